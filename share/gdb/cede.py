# SPDX-License-Identifier: MIT
"""cede's fibers in gdb: source this file, then say `help cede`.

It reads memory only, so it works on a stopped program and on a core file alike. It needs the names
of the program's symbols and the debugging information of one file of the library, which every build
of it has until it is stripped.

A core file that the kernel wrote has every stack. generate-core-file gives up a mapping at the
first page that it can't read: it leaves out the stacks where guards are made by
MADV_GUARD_INSTALL.
"""

import gdb
from gdb.unwinder import Unwinder, register_unwinder

# What a saved context holds, in the order pc, sp, fp, base. The registers that it doesn't hold lie
# where the unwind rules of the resume address say.
REGISTERS = {
    "i386:x86-64": ("rip", "rsp", "rbp", "rbx"),
    "aarch64": ("pc", "sp", "x29", "x19"),
}


class Fiber:
    """A record of one that has not ended."""

    def __init__(self, scheduler, record):
        self.scheduler = scheduler
        self.record = record
        self.id = int(record["id"])

    def name(self):
        extras = self.record["extras"]
        return extras["name"].string().split("\0")[0] if int(extras) != 0 else ""

    def is_running(self):
        return self.scheduler.state["current"] == self.record.address

    def state(self):
        stage = str(self.record["stage"]).split("::")[-1]
        if stage == "ready" and self.is_running():
            stage = "running"
        if stage == "starved":
            stage = "created"
        return stage + (" suspended" if self.record["is_suspended"] else "")

    def waits_for(self):
        if self.record["is_held"]:
            return "a limit"
        waiter = self.record["waiter"]
        if self.state().split()[0] != "waiting" or int(waiter) == 0:
            return ""
        try:
            text = waiter["what_"].string()
        except gdb.MemoryError:
            return "? (its stack is not in the core file)"
        links = waiter["links_"]
        if int(links) != 0:
            joined = self.scheduler.joiners.get(int(links["list"]))
            if joined is not None:
                text += " of fiber %d" % joined
        if int(waiter["deadline_at_"]) != 2 ** (8 * waiter["deadline_at_"].type.sizeof) - 1:
            text += ", with a deadline"
        return text

    def spawned_at(self):
        place = self.record["spawned"]
        if int(place["file"]) == 0:
            return ""
        return "%s:%d" % (place["file"].string(), int(place["line"]))


class Scheduler:
    def __init__(self, number, state):
        self.number = number
        self.state = state
        self.thread_number = int(state["thread_number"])
        self.fibers = sorted(self._fibers(), key=lambda fiber: fiber.id)
        self.joiners = {int(fiber.record["joiners"].address): fiber.id for fiber in self.fibers}

    def _fibers(self):
        record_type = self.state["pump"].type.pointer()
        block = self.state["records"]["blocks_"]
        while int(block) != 0:
            first = block["memory"].address.cast(record_type)
            for i in range(int(block["carved"])):
                record = (first + i).dereference()
                # One that is being made has no body yet.
                if str(record["stage"]).split("::")[-1] != "finished" and int(record["kind"]) != 0:
                    yield Fiber(self, record)
            block = block["next"]

    def thread(self):
        """gdb's thread for it; none if the core file doesn't have it."""
        threads = list(gdb.selected_inferior().threads())
        for thread in threads:
            if self.thread_number in thread.ptid[1:]:
                return thread
        # A child has the thread that forked, under another number.
        return threads[0] if len(threads) == 1 else None


def schedulers():
    """All of the program, oldest first."""
    # Not by an expression: those are of the selected frame's language, which may be C.
    symbol = gdb.lookup_global_symbol("cede::core::schedulers")
    if symbol is None:
        raise gdb.GdbError("this program has no schedulers of cede, or no debugging information")
    try:
        state = symbol.value()
        states = []
        while int(state) != 0:
            states.append(state.dereference())
            state = state["older"]
        return [Scheduler(i + 1, state) for i, state in enumerate(reversed(states))]
    except gdb.error as error:
        raise gdb.GdbError("no schedulers can be read: %s" % error)


def find_fiber(text):
    """The one that ID or SCHEDULER.ID names."""
    parts = text.split(".")
    if not all(part.isdigit() for part in parts) or len(parts) > 2:
        raise gdb.GdbError("an ID as `cede fibers` shows it is expected, or SCHEDULER.ID")
    found = [
        fiber
        for scheduler in schedulers()
        for fiber in scheduler.fibers
        if fiber.id == int(parts[-1]) and (len(parts) == 1 or scheduler.number == int(parts[0]))
    ]
    if not found:
        raise gdb.GdbError("there is no fiber %s" % text)
    if len(found) > 1:
        which = ["%d.%d" % (fiber.scheduler.number, fiber.id) for fiber in found]
        raise gdb.GdbError("several schedulers have one: say " + " or ".join(which))
    return found[0]


class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class FiberUnwinder(Unwinder):
    """While it has a context: its execution is what called the selected thread's newest frame.

    Registers of a core file can't be written, so the debugger is told of another caller instead.
    """

    def __init__(self):
        super().__init__("cede")
        self.context = None
        self.newest = None

    def __call__(self, pending):
        if self.context is None or pending.architecture().name() not in REGISTERS:
            return None
        pc, sp, fp, base = REGISTERS[pending.architecture().name()]
        here = (int(pending.read_register(pc)), int(pending.read_register(sp)))
        if here != self.newest:
            return None
        # Callers must lie higher than this frame seems to.
        info = pending.create_unwind_info(FrameId(self.context["sp"], pending.read_register(pc)))
        for register, field in ((pc, "resume"), (sp, "sp"), (fp, "fp"), (base, "base")):
            value = self.context[field].cast(pending.read_register(register).type)
            info.add_saved_register(register, value)
        return info

    def look_at(self, context):
        frame = gdb.newest_frame()
        registers = REGISTERS.get(frame.architecture().name())
        if registers is None:
            raise gdb.GdbError("not for this processor: " + frame.architecture().name())
        self.newest = tuple(int(frame.read_register(name)) for name in registers[:2])
        self.context = context
        gdb.invalidate_cached_frames()

    def look_away(self):
        self.context = None
        gdb.invalidate_cached_frames()

    def depth(self):
        """How many frames stand before the fiber's: the claimed one and what it has inlined."""
        frame = gdb.newest_frame()
        depth = 1
        while frame.type() == gdb.INLINE_FRAME:
            frame = frame.older()
            depth += 1
        return depth


unwinder = FiberUnwinder()
register_unwinder(None, unwinder, replace=True)


def renumber(text, skipped):
    """A backtrace without its first frames."""
    lines = []
    number = -1
    for line in text.splitlines():
        head = line.split(None, 1)[0] if line.strip() else ""
        if head.startswith("#") and head[1:].isdigit():
            number = int(head[1:]) - skipped
            line = "%-4s%s" % ("#%d" % number, line[max(len(head), 3):].lstrip())
        if number >= 0:
            lines.append(line)
    return "\n".join(lines)


def backtrace(fiber, arguments):
    stage = fiber.state()
    if stage.startswith("created") or int(fiber.record["slot"]["stack"]) == 0:
        return "fiber %d has not started" % fiber.id
    thread = fiber.scheduler.thread()
    before = gdb.selected_thread()
    if fiber.is_running():
        if thread is None:
            raise gdb.GdbError("fiber %d runs on a thread that isn't there" % fiber.id)
        thread.switch()
        try:
            return gdb.execute("backtrace " + arguments, to_string=True).rstrip()
        finally:
            before.switch()
    gdb.newest_frame().select()
    unwinder.look_at(fiber.record["slot"]["context"])
    try:
        return renumber(gdb.execute("backtrace " + arguments, to_string=True), unwinder.depth())
    finally:
        unwinder.look_away()


class Cede(gdb.Command):
    """Fibers of the cede library: `cede fibers` and `cede bt`."""

    def __init__(self):
        super().__init__("cede", gdb.COMMAND_STACK, prefix=True)


class CedeFibers(gdb.Command):
    """Lists every fiber of every scheduler: cede fibers"""

    def __init__(self):
        super().__init__("cede fibers", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        heads = ("id", "state", "priority", "name", "waits for", "spawned at")
        for scheduler in schedulers():
            thread = scheduler.thread()
            where = "thread %d" % thread.num if thread is not None else "a thread that isn't there"
            count = len(scheduler.fibers)
            print("scheduler %d on %s, %d fibers" % (scheduler.number, where, count))
            rows = [heads] + [
                (
                    str(fiber.id),
                    fiber.state(),
                    str(int(fiber.record["priority"])),
                    fiber.name(),
                    fiber.waits_for(),
                    fiber.spawned_at(),
                )
                for fiber in scheduler.fibers
            ]
            widths = [max(len(row[i]) for row in rows) for i in range(len(heads))]
            for row in rows:
                cells = [text.ljust(width) for text, width in zip(row, widths)]
                print(("  " + "  ".join(cells)).rstrip())


class CedeBacktrace(gdb.Command):
    """Prints the backtrace of a fiber: cede bt ID [what backtrace takes]

ID is as `cede fibers` shows it; SCHEDULER.ID where several schedulers have one."""

    def __init__(self):
        super().__init__("cede bt", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        words = argument.split(None, 1)
        if not words:
            raise gdb.GdbError("cede bt ID [what backtrace takes]")
        print(backtrace(find_fiber(words[0]), words[1] if len(words) > 1 else ""))


Cede()
CedeFibers()
CedeBacktrace()
