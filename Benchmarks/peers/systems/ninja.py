"""ninja: one program on this machine, which reads the graph from a file.

Each operation is a process under /bin/sh. The clock includes ninja's start and its reading.
"""
import pathlib
import shutil
import subprocess
import sys
import time


class System:
    def __init__(self, setup):
        self.setup = setup
        self.program = pathlib.Path(sys.executable).with_name("ninja")

    def prepare(self):
        pass

    def run(self, graph):
        folder = self.setup.folder / "ninja"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        with (folder / "build.ninja").open("w") as file:
            file.write("rule nothing\n  command = :\nrule wait\n  command = sleep $seconds\n")
            for index, (seconds, before) in enumerate(graph):
                rule = "wait" if seconds > 0 else "nothing"
                file.write(f"build o{index}: {rule} {' '.join(f'o{one}' for one in before)}\n")
                if seconds > 0:
                    file.write(f"  seconds = {seconds:.6f}\n")
        command = [self.program, "-C", folder, f"-j{self.setup.slots}", "--quiet"]
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - started

    def stop(self):
        pass
