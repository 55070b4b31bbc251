"""dist.py: archives and a wheel that two builds make with the same bytes.

    python3 tools/dist.py source OUT             OUT/tether-VERSION.tar.gz
    python3 tools/dist.py program FOLDER NAME    NAME.tar.gz, of Windows NAME.zip
    python3 tools/dist.py wheel FOLDER LIBTETHER.SO OUT    OUT/tether_video-....whl

FOLDER is what install.sh put there as `program`. Names are sorted, owners and
times are fixed (SOURCE_DATE_EPOCH; else the year 2000).

SPDX-License-Identifier: Apache-2.0
"""
import base64
import gzip
import hashlib
import io
import os
import pathlib
import platform
import re
import subprocess
import sys
import tarfile
import time
import zipfile

WHEN = int(os.environ.get("SOURCE_DATE_EPOCH", 946684800))
HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent


def version():
    text = (SOURCE / "include/tether/version.h").read_text()
    return re.search(r'define TT_VERSION "(.*)"', text)[1]


def files_of(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*")
                  if p.is_file() and not p.is_symlink())


def source_files():
    """What git has; of an unpacked archive all but build/."""
    if (SOURCE / ".git").exists():
        out = subprocess.run(["git", "-C", SOURCE, "ls-files", "-z"],
                             check=True, capture_output=True).stdout
        return sorted(f for f in out.decode().split("\0") if f)
    return [f for f in files_of(SOURCE) if f.split("/")[0] != "build"]


def is_program(path):
    return bool(path.stat().st_mode & 0o100)


def tar(out, folder, names, top):
    with open(out, "wb") as f, \
            gzip.GzipFile("", "wb", 9, f, mtime=WHEN) as z, \
            tarfile.open(fileobj=z, mode="w", format=tarfile.USTAR_FORMAT) as t:
        for name in names:
            data = (folder / name).read_bytes()
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mtime = len(data), WHEN
            entry.mode = 0o755 if is_program(folder / name) else 0o644
            t.addfile(entry, io.BytesIO(data))


def zipped(out, members):
    """members: (name, data, is a program)"""
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as z:
        for name, data, program in members:
            entry = zipfile.ZipInfo(name, time.gmtime(WHEN)[:6])
            entry.create_system = 3     # its mode is POSIX's
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            z.writestr(entry, data)


def make_program(folder, name):
    top = os.path.basename(name)
    names = files_of(folder)
    if (folder / "bin/tether.exe").exists():
        zipped(name + ".zip", [(f"{top}/{n}", (folder / n).read_bytes(),
                                is_program(folder / n)) for n in names])
    else:
        tar(name + ".tar.gz", folder, names, top)


def platform_tag(programs):
    """The oldest glibc that has every symbol the programs name."""
    wanted = {int(n) for data in programs
              for n in re.findall(rb"\0GLIBC_2\.(\d+)(?=[\0.])", data)}
    return f"manylinux_2_{max(wanted | {17})}_{platform.machine()}"


def make_wheel(folder, library, out):
    """Programs become scripts, the library, headers and models data."""
    project = (HERE / "python/pyproject.toml").read_text()
    summary = re.search(r'description = "(.*)"', project)[1]
    if f'version = "{version()}"' not in project:
        sys.exit(f"pyproject.toml is not of version {version()}")
    name = f"tether_video-{version()}"
    places = {f"{name}.data/data/lib/libtether.so": library}
    for path in sorted((HERE / "python").glob("*.py")):
        places[path.name] = path
    for path in sorted((SOURCE / "include/tether").glob("*.h")):
        places[f"{name}.data/data/include/tether/{path.name}"] = path
    for path in files_of(folder):
        scheme = "scripts" + path[3:] if path[:4] == "bin/" else "data/" + path
        places[f"{name}.data/{scheme}"] = folder / path
    members = [(p, f.read_bytes(), is_program(f)) for p, f in places.items()]
    programs = [data for _, data, _ in members if data[:4] == b"\x7fELF"]
    tag = f"py3-none-{platform_tag(programs)}"
    info = f"{name}.dist-info"
    members += [
        (f"{info}/METADATA", "Metadata-Version: 2.1\nName: tether-video\n"
         f"Version: {version()}\nSummary: {summary}\nLicense: Apache-2.0\n"
         "Requires-Python: >=3.9\nRequires-Dist: numpy\n", False),
        (f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: tether dist.py\n"
         f"Root-Is-Purelib: false\nTag: {tag}\n", False)]
    members = [(n, d.encode() if isinstance(d, str) else d, p)
               for n, d, p in members]
    record = "".join(
        f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(d).digest()).decode().rstrip('=')},"
        f"{len(d)}\n" for n, d, _ in members) + f"{info}/RECORD,,\n"
    members.append((f"{info}/RECORD", record.encode(), False))
    zipped(out / f"{name}-{tag}.whl", members)


def main(args):
    if len(args) == 2 and args[0] == "source":
        top = f"tether-{version()}"
        tar(pathlib.Path(args[1]) / f"{top}.tar.gz", SOURCE, source_files(), top)
    elif len(args) == 3 and args[0] == "program":
        make_program(pathlib.Path(args[1]), args[2])
    elif len(args) == 4 and args[0] == "wheel":
        make_wheel(*map(pathlib.Path, args[1:]))
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
