# SPDX-License-Identifier: MIT
# Run by gdb on hops.cpp's program: at every instruction of both forms of the switch and of what
# calls them, the backtrace has to end at the entry of the process or in main, without a frame that
# gdb can't name.
import gdb

WATCHED = ("hop", "hop_out_of_line", "cede_switch", "cede_entry", "cede_leave")


def name_of(frame):
    name = frame.name() or "??"
    return name.split("(")[0]


def frames():
    frame = gdb.newest_frame()
    result = []
    while frame is not None and len(result) < 50:
        result.append(frame)
        frame = frame.older()
    return result


def check():
    stack = frames()
    names = [name_of(frame) for frame in stack]
    text = " < ".join(names)
    reason = stack[-1].unwind_stop_reason()
    if reason not in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST):
        raise gdb.GdbError("%s: %s" % (text, gdb.frame_stop_reason_string(reason)))
    if names[-1] not in ("cede_entry", "cede_leave", "main"):
        raise gdb.GdbError("ends elsewhere: " + text)
    if "??" in names:
        raise gdb.GdbError("an unknown frame: " + text)
    return names[-1]


def run():
    for setting in ("pagination off", "confirm off", "width 0", "print entry-values no"):
        gdb.execute("set " + setting)
    gdb.execute("break all_done", to_string=True)
    gdb.execute("break hop", to_string=True)
    gdb.execute("break hop_out_of_line", to_string=True)
    gdb.execute("run", to_string=True)
    checked = {"main": 0, "cede_entry": 0, "cede_leave": 0}
    while name_of(gdb.newest_frame()) != "all_done":
        # To the end of what this breakpoint began.
        while any(name_of(frame) in WATCHED for frame in frames()[:4]):
            checked[check()] += 1
            gdb.execute("stepi", to_string=True)
        gdb.execute("continue", to_string=True)
    if min(checked["main"], checked["cede_entry"]) < 100:
        raise gdb.GdbError("hardly anything was looked at: %s" % checked)
    print("backtraces are right: %s" % checked)


try:
    run()
except BaseException as error:
    print("FAILED: %s" % error)
    gdb.execute("x/i $pc")
    gdb.execute("kill")
    gdb.execute("quit 1")
gdb.execute("kill")
gdb.execute("quit 0")
