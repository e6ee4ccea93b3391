# Run by gdb: writes one JSON line per thread of the attached process to
# $USERLAB_OUT, the stack innermost frame first.
import json
import os
import re

import gdb

LIMIT = 2000
KINDS = {gdb.INLINE_FRAME: "inline", gdb.TAILCALL_FRAME: "inline", gdb.SIGTRAMP_FRAME: "signal"}
starts = {}


def start_of(pc):
    """The address of the symbol that pc belongs to, or None."""
    if pc not in starts:
        said = gdb.execute("info symbol %#x" % pc, to_string=True)
        m = re.match(r"(.*?)(?: \+ (\d+))? in section ", said)
        starts[pc] = pc - int(m.group(2) or 0) if m else None
    return starts[pc]


def frame_of(frame, exact):
    pc, name = frame.pc(), frame.name()
    start = start_of(pc if exact else pc - 1) if name else None
    return {
        "pc": pc,
        "func": name or "",
        "offset": pc - start if start is not None else -1,
        "kind": KINDS.get(frame.type(), ""),
    }


def walk():
    frames, error, end = [], "", False
    try:
        frame, exact = gdb.newest_frame(), True
        while frame is not None and len(frames) < LIMIT:
            frames.append(frame_of(frame, exact))
            if frames[-1]["kind"] != "inline":
                exact = frames[-1]["kind"] == "signal"
            older = frame.older()
            if older is None:
                why = frame.unwind_stop_reason()
                end = why == gdb.FRAME_UNWIND_OUTERMOST
                if why > gdb.FRAME_UNWIND_OUTERMOST:
                    error = gdb.frame_stop_reason_string(why)
            frame = older
    except gdb.error as e:
        error = str(e)
    return frames, error, end


with open(os.environ["USERLAB_OUT"], "w") as out:
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frames, error, end = walk()
        print(json.dumps({"tid": thread.ptid[1], "frames": frames, "error": error, "outermost": end}), file=out)
