# SPDX-License-Identifier: MIT
# Run by gdb, with share/gdb/cede.py, on fibers.cpp's program: what the commands say of each fiber,
# in the running program and in a core file of it.
import os
import re
import gdb

FIBERS = r"""
scheduler 1 on thread \d+, 1 fibers
  id +state +priority +name +waits for +spawned at
  1 +waiting +0 +main +sleep, with a deadline +\S+fibers.cpp:\d+
scheduler 2 on thread 1, 8 fibers
  id +state +priority +name +waits for +spawned at
  1 +running +0 +main +\S+fibers.cpp:\d+
  2 +waiting +2 +nested +for the printer +\S+fibers.cpp:\d+
  3 +ready +0 +yielding +\S+fibers.cpp:\d+
  4 +waiting +0 +join of fiber 2 +\S+fibers.cpp:\d+
  5 +waiting +0 +sleeping +sleep, with a deadline +\S+fibers.cpp:\d+
  6 +waiting +0 +generating +park +\S+fibers.cpp:\d+
  7 +created +0 +new +\S+fibers.cpp:\d+
  8 +created +0 +queued +a limit +\S+fibers.cpp:\d+
"""

# What the backtrace of each has to name, innermost first; the last is its outermost frame. Those of
# the library between may be inlined.
BACKTRACES = {
    "1.1": ["cede_switch", "sleep_long", "cede_entry"],
    "2.1": ["all_wait", "cede_entry"],
    "2": ["cede_switch"] + 4 * ["wait_in_the_middle"] + ["cede_entry"],
    "3": ["yield_for_ever", "cede_entry"],
    "4": ["cede_switch", "join_other", "cede_entry"],
    "5": ["cede_switch", "sleep_long", "cede_entry"],
    "6": ["generate", "cede_entry"],
    "7": ["fiber 7 has not started"],
}

REFUSED = {"cede bt 1": "say 1.1 or 2.1", "cede bt 99": "no fiber 99", "cede bt": "cede bt ID",
           "cede bt x": "expected"}


def check(condition, text):
    if not condition:
        raise gdb.GdbError(text)


def refusal(command):
    try:
        return "not refused: " + gdb.execute(command, to_string=True)
    except gdb.error as error:
        return str(error)


def check_all():
    gdb.execute("set language c")  # as in a frame of the C library
    listed = gdb.execute("cede fibers", to_string=True)
    gdb.execute("set language auto")
    check(re.fullmatch(FIBERS.strip(), listed.strip()), "cede fibers says\n" + listed)
    before = gdb.execute("backtrace", to_string=True)
    for fiber, names in BACKTRACES.items():
        text = gdb.execute("cede bt " + fiber, to_string=True)
        pattern = ".*".join(re.escape(name) for name in names) + "[^\n]*\n$"
        check(re.search(pattern, text, re.DOTALL), "cede bt %s says\n%s" % (fiber, text))
        check("7" == fiber or text.startswith("#0 "), "cede bt %s begins\n%s" % (fiber, text))
        check("??" not in text and "corrupt" not in text, "cede bt %s says\n%s" % (fiber, text))
    check(len(gdb.execute("cede bt 2 3", to_string=True).splitlines()) <= 4, "cede bt 2 3")
    for command, reason in REFUSED.items():
        check(reason in refusal(command), command + ": " + refusal(command))
    check(gdb.execute("backtrace", to_string=True) == before, "the thread's own is another now")


def has_shadow_memory():
    """A sanitizer's, all of which gdb would write to the core file."""
    try:
        return gdb.parse_and_eval("(long)&__sanitizer_set_death_callback") != 0
    except gdb.error:
        return False


def run():
    for setting in ("pagination off", "confirm off", "width 0", "print entry-values no",
                    "print frame-arguments all"):
        gdb.execute("set " + setting)
    program = gdb.current_progspace().filename
    core = program + ".core"
    gdb.execute("break all_wait", to_string=True)
    gdb.execute("run", to_string=True)
    check_all()
    if has_shadow_memory():
        print("fibers are told as they are; no core file is made under a sanitizer")
        gdb.execute("kill")
        return
    gdb.execute("generate-core-file " + core, to_string=True)
    gdb.execute("kill")
    try:
        gdb.execute("core-file " + core, to_string=True)
        check_all()
    finally:
        os.remove(core)
    print("fibers are told as they are")


try:
    run()
except BaseException as error:
    print("FAILED: %s" % error)
    gdb.execute("quit 1")
gdb.execute("quit 0")
