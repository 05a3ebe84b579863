"""A program in the place of latexml_oxide, and sources for it.

Its page holds the main file's text. Lines of that file that begin with `%log ` are its log, and
those with `%run ` are commands that it obeys, as a converter does that a paper has taken over.
"""

import gzip
import io
import os
import tarfile

SCRIPT = r"""#!/bin/sh
if [ "$1" = --version ]; then echo "latexml_oxide 0.7.6"; exit; fi
for option; do
  case $option in --dest=*) page=${option#--dest=} ;; --log=*) log=${option#--log=} ;; esac
  main=$option
done
echo Status:conversion:0 >"$log"
sed -n 's/^%log //p' "$main" >>"$log"
{
  echo '<!DOCTYPE html><html><body><article class="ltx_document"><h1 class="ltx_title_document">A Page</h1>'
  echo '<div class="ltx_para" id="p1"><p class="ltx_p" id="p1.1">'
  echo "<!-- $* -->"; grep -v "^%" "$main"
  echo '</p></div></article></body></html>'
} >"$page"
sed -n 's/^%run //p' "$main" >/tmp/commands.$$ && page=$page log=$log sh /tmp/commands.$$
rm -f /tmp/commands.$$
"""


def install(folder, monkeypatch):
    """Put the program first on the path."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "latexml_oxide"
    program.write_text(SCRIPT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


def document(body="We read margins of books.", *lines):
    """The main file of a paper; lines: for the program."""
    head = "".join(f"%{line}\n" for line in lines)
    return f"{head}\\documentclass{{article}}\n\\begin{{document}}\n{body}\n\\end{{document}}\n".encode()


def tar_of(files, *members):
    """A tar of files (name → content), and of members that are not plain."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        for member in members:
            tar.addfile(member)
    return packed.getvalue()


def eprint(files):
    """A gzipped tar, as arXiv sends the source of a paper."""
    return gzip.compress(tar_of(files))
