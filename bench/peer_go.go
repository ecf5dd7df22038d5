// SPDX-License-Identifier: MIT
// Peer: Go's goroutines and channels, on one processor. Prints one line of JSON, the medians of five
// repetitions each, as Google Benchmark has them. It is a program of its own: its times are wall
// time, since Go's own threads are part of what they measure.
package main

import (
	"encoding/json"
	"flag"
	"os"
	"runtime"
	"sort"
	"sync"
	"testing"
)

func yield(b *testing.B) {
	over := false
	go func() {
		for !over {
			runtime.Gosched()
		}
	}()
	for i := 0; i < b.N; i += 2 {
		runtime.Gosched()
	}
	over = true
	runtime.Gosched()
}

func spawnJoin(b *testing.B) {
	var done sync.WaitGroup
	for i := 0; i < b.N; i++ {
		done.Add(1)
		go done.Done()
		done.Wait()
	}
}

func unbuffered(b *testing.B) {
	there, back := make(chan int), make(chan int)
	go func() {
		for value := range there {
			back <- value + 1
		}
	}()
	for i := 0; i < b.N; i += 2 {
		there <- i
		<-back
	}
	close(there)
}

func stream(b *testing.B, capacity int) {
	channel := make(chan int, capacity)
	go func() {
		for i := 0; i < b.N; i++ {
			channel <- i
		}
	}()
	for i := 0; i < b.N; i++ {
		<-channel
	}
}

func mutex(b *testing.B) {
	var mutex sync.Mutex
	for i := 0; i < b.N; i++ {
		mutex.Lock()
		mutex.Unlock()
	}
}

func receiveAny(c []chan int) int {
	select {
	case v := <-c[0]:
		return v
	case v := <-c[1]:
		return v
	case v := <-c[2]:
		return v
	case v := <-c[3]:
		return v
	case v := <-c[4]:
		return v
	case v := <-c[5]:
		return v
	case v := <-c[6]:
		return v
	case v := <-c[7]:
		return v
	}
}

func channels(capacity int) []chan int {
	c := make([]chan int, 8)
	for i := range c {
		c[i] = make(chan int, capacity)
	}
	return c
}

func selectReady(b *testing.B) {
	c := channels(1)
	for i := 0; i < b.N; i++ {
		c[i%8] <- 1
		receiveAny(c)
	}
}

func selectBlocking(b *testing.B) {
	c := channels(0)
	go func() {
		for i := 0; i < b.N; i++ {
			c[i%8] <- 1
		}
	}()
	for i := 0; i < b.N; i++ {
		receiveAny(c)
	}
}

const stages = 100000

func pipeline(b *testing.B) {
	first := make(chan int)
	last := first
	for i := 0; i < stages; i++ {
		in, out := last, make(chan int)
		go func() {
			for value := range in {
				out <- value + 1
			}
			close(out)
		}()
		last = out
	}
	runtime.Gosched()
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		first <- 0
		<-last
	}
	b.StopTimer()
	close(first)
	<-last
}

type result struct {
	Name      string  `json:"name"`
	RunName   string  `json:"run_name"`
	RunType   string  `json:"run_type"`
	Aggregate string  `json:"aggregate_name"`
	Time      float64 `json:"real_time"`
	CPU       float64 `json:"cpu_time"`
	Unit      string  `json:"time_unit"`
}

func main() {
	testing.Init()
	flag.Set("test.benchtime", "0.2s")
	runtime.GOMAXPROCS(1)
	results := []result{}
	measure := func(name string, perOperation float64, f func(b *testing.B)) {
		times := []float64{}
		for i := 0; i < 5; i++ {
			r := testing.Benchmark(f)
			times = append(times, float64(r.T.Nanoseconds())/float64(r.N)/perOperation)
		}
		sort.Float64s(times)
		results = append(results, result{name + "/go_median", name + "/go", "aggregate", "median",
			times[2], times[2], "ns"})
	}
	measure("yield/2", 1, yield)
	measure("spawn_join", 1, spawnJoin)
	measure("channel_unbuffered", 1, unbuffered)
	measure("channel_unbuffered_one_way", 1, func(b *testing.B) { stream(b, 0) })
	measure("channel_buffered/128", 1, func(b *testing.B) { stream(b, 128) })
	measure("mutex", 1, mutex)
	measure("select/8", 1, selectReady)
	measure("select_blocking/8", 1, selectBlocking)
	measure("pipeline/100000", stages, pipeline)
	json.NewEncoder(os.Stdout).Encode(map[string]any{"benchmarks": results})
}
