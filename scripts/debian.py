"""A Debian in a folder: made by debootstrap, and commands in it."""
import os, pathlib, signal, subprocess, time


def mirror():
    """Where this machine's own packages come from."""
    sites = subprocess.run(["apt-get", "indextargets", "--format", "$(SITE)"], capture_output=True, text=True, check=True).stdout.split()
    return next(site for site in sites if site.rstrip("/").endswith("/debian"))


def debootstrap(suite, folder):
    """The least of a Debian, in a folder."""
    subprocess.run(["debootstrap", "--variant=minbase", suite, folder, mirror()], check=True, stdout=subprocess.DEVNULL)


class Root:
    """A Debian in a folder."""

    def __init__(self, path): self.path = pathlib.Path(path)

    def run(self, *command, check=True, **options):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C", "HOME": "/root"}
        environment |= {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        done = subprocess.run(["chroot", str(self.path), *command], capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL, **options)
        if check and done.returncode:
            raise SystemExit(f"{' '.join(command)}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def text(self, path): return (self.path / path.lstrip("/")).read_text()

    def exists(self, path): return os.path.lexists(self.path / path.lstrip("/"))

    def processes(self):
        """Those that run in it: a process of another root is none of ours."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and os.readlink(entry / "root") == str(self.path): found.append(int(entry.name))
            except OSError: pass
        return found

    def end(self):
        for sign in (signal.SIGTERM, signal.SIGKILL):
            for process in self.processes():
                try: os.kill(process, sign)
                except OSError: pass
            for _ in range(50):
                if not self.processes(): return
                time.sleep(0.1)
