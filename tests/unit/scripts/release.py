"""scripts/release makes the same of two clones, and says in a line why it makes nothing. release.py ROOT

Of a small repository that has what it looks at.
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

root = pathlib.Path(sys.argv[1])
FILES = ["meson.build", "pyproject.toml", "CITATION.cff", "README.md", "LICENSE", "docs/wheel.md", "docs/install.md", "packaging/debian/control",
         "src/lib/meson.build", "scripts/release", "tests/system_wheel/versions.py",
         "packaging/conda/recipe.yaml", "packaging/spack/packages/col/package.py", "packaging/vcpkg/col/vcpkg.json", "packaging/nix/default.nix"]
CHANGES = "# Changelog\n\n## 0.1.0 (2026-12-05)\n\n- **It is there.**\n\n## 0.0.9 (2026-11-01)\n\n- Older.\n"
wrong = []
work = pathlib.Path(tempfile.mkdtemp(prefix="col-release-test-"))
settings = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "GNUPGHOME": str(work / "keys"),
            **{f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@example.org"))}}


def run(*command, cwd, **options):
    environment = {**os.environ, **settings, **options.pop("environment", {})}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=100, **options)


def git(*command, cwd):
    done = run("git", *command, cwd=cwd)
    if done.returncode != 0:
        sys.exit(f"release.py: git {command[0]}: {done.stderr}")


def expect(what, is_so, seen):
    if not is_so:
        wrong.append(f"{what}: {seen.stdout + seen.stderr if hasattr(seen, 'stderr') else seen}")


def commit(repository, **texts):
    for name, text in texts.items():
        path = repository / name.replace("__", "/")
        path.write_text(text)
    git("add", ".", cwd=repository)
    git("commit", "--quiet", "-m", "a change", cwd=repository)


def release(repository, *arguments, **options):
    return run(sys.executable, "-B", "scripts/release", "--parts", "source", *arguments, cwd=repository, **options)


def refused(what, repository, text, *arguments):
    done = release(repository, *arguments, str(work / "refused"))
    expect(what, done.returncode == 1 and re.fullmatch(f"release: {text}\n", done.stderr) and not (work / "refused").exists(), done)


def with_clone(name):
    clone = work / name
    git("clone", "--quiet", str(first), str(clone), cwd=work)
    return clone


try:
    first = work / "first"
    for name in FILES:
        (first / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, first / name)
    version = re.search(r"^  version: '(.*)',$", (first / "meson.build").read_text(), re.M)[1]
    changes = CHANGES.replace("0.1.0", version)
    run("git", "init", "--quiet", cwd=first)
    commit(first, **{"CHANGELOG.md": changes})

    # ---- The same bytes from another clone, of which everything else is another, too
    done = release(first, str(work / "one"))
    expect("the first", done.returncode == 0 and f"libcol-{version}.tar.gz" in done.stdout and "made twice with the same bytes" in done.stdout, done)
    long_one = with_clone("another-folder-with-a-longer-name")
    git("config", "tar.umask", "0", cwd=long_one)
    done = release(long_one, "--once", str(work / "two"), umask=0o077, environment={"TZ": "Asia/Tokyo", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "1"})
    expect("the second", done.returncode == 0 and "made twice" not in done.stdout, done)
    for path in (work / "one").iterdir():
        expect("the same bytes", path.read_bytes() == (work / "two" / path.name).read_bytes(), f"{path.name} differs")
    expect("the files", sorted(os.listdir(work / "one")) == sorted(os.listdir(work / "two")), os.listdir(work / "two"))

    # ---- What is in it
    with tarfile.open(work / "one" / f"libcol-{version}.tar.gz") as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
        information = archive.extractfile(f"libcol-{version}/PKG-INFO").read().decode()
    expect("no file that git does not have, but Python's", names == {*FILES, "CHANGELOG.md", "PKG-INFO"}, names)
    expect("PKG-INFO", f"\nName: libcol\nVersion: {version}\n" in information, information[:300])
    expect("the notes", (work / "one/notes.md").read_text() == "- **It is there.**\n", (work / "one/notes.md").read_text())
    for line in (work / "one/SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        expect("SHA256SUMS", hashlib.sha256((work / "one" / name).read_bytes()).hexdigest() == digest, line)
    bill = json.loads((work / "one" / f"libcol-{version}.cdx.json").read_text())
    listed = {part["name"] for part in bill["components"] if part["type"] == "library"}
    asked = {name for path in (root / "src").rglob("meson.build") for name in re.findall(r"(?<!override_)\bdependency\('(\w+)'", path.read_text())}
    asked |= {"fmt", "nlohmann_json", "catch2", "nanobind"} - {"threads"}
    asked |= set(re.findall(r"^\w+ = dependency\('(\w+)'", (root / "meson.build").read_text(), re.M)) - {"threads"}
    expect("the bill of materials has what meson.build asks for", listed == asked - {"col"}, f"{sorted(listed)} and {sorted(asked)}")

    # ---- What is given comes along, and bytes that are others the second time are found
    (work / "given").mkdir()
    (work / "given" / f"libcol-{version}-cp311-cp311-manylinux_2_34_aarch64.whl").write_text("a wheel")
    (work / "given" / f"libcol-dev_{version}_arm64.deb").write_text("a package")
    done = release(first, "--given", str(work / "given"), str(work / "one"))
    expect("given", done.returncode == 0 and "aarch64.whl" in (work / "one/SHA256SUMS").read_text() and "aarch64.whl" in done.stdout, done)
    expect("what goes to PyPI", re.search(r"twine upload \S+\.whl \S+\.tar\.gz\n", done.stdout), done)

    planted = with_clone("planted")
    text = (planted / "scripts/release").read_text()
    commit(planted, scripts__release=text.replace("mtime=epoch", "mtime=os.getpid()"))
    expect("planted", text != (planted / "scripts/release").read_text(), "there is no mtime=epoch")
    done = release(planted, str(work / "planted-made"))
    expect("nothing is left of it", not list(work.glob("*planted-made*")), list(work.iterdir()))
    expect("other bytes", done.returncode == 1 and f"libcol-{version}.tar.gz" in done.stderr and "the second time" in done.stderr, done)

    # ---- Signed, where there is a key
    if shutil.which("gpg"):
        (work / "keys").mkdir(mode=0o700)
        done = run("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "a@example.org", "ed25519", "sign", "never", cwd=work)
        expect("a key", done.returncode == 0, done)
        done = release(first, "--once", "--sign", "a@example.org", str(work / "one"))
        verified = run("gpg", "--verify", "SHA256SUMS.asc", "SHA256SUMS", cwd=work / "one")
        expect("signed", done.returncode == 0 and verified.returncode == 0 and "git tag --sign" in done.stdout, done)
        done = release(first, "--once", "--sign", "nobody", str(work / "one"))
        expect("no such key", done.returncode == 1 and re.fullmatch("release: gpg does not sign as 'nobody': .*\n", done.stderr), done)
        run("gpgconf", "--kill", "all", cwd=work)

    # ---- What is no release
    clone = with_clone("unreleased")
    commit(clone, **{"CHANGELOG.md": changes.replace("(2026-12-05)", "(unreleased)")})
    refused("unreleased", clone, f"CHANGELOG.md says '{version} \\(unreleased\\)': put the date .*")
    expect("a rehearsal", release(clone, "--once", "--rehearse", str(work / "rehearsed")).returncode == 0, "is refused")
    (clone / "README.md").write_text("another")
    (clone / "new").write_text("new")
    refused("dirty", clone, "not as in the last commit: README.md and 1 more; commit it, .*")
    clone = with_clone("mismatch")
    commit(clone, **{"CITATION.cff": (clone / "CITATION.cff").read_text().replace(version, "9.9.9")})
    refused("mismatch", clone, f"CITATION.cff says 9.9.9, and meson.build {version}: write one version everywhere")
    clone = with_clone("tagged")
    git("tag", f"v{version}", cwd=clone)
    refused("tagged", clone, f"there is a tag v{version}, of commit .*: raise the version in meson.build, or --tagged makes that release again")
    expect("that release again", release(clone, "--once", "--tagged", str(work / "again")).returncode == 0, "is refused")
    commit(clone, **{"README.md": "another"})
    refused("tagged elsewhere", clone, f"there is a tag v{version}, of commit .*: raise the version in meson.build", "--tagged")
    (work / "full").mkdir()
    (work / "full/mine").write_text("mine")
    done = release(first, str(work / "full"))
    expect("a folder of others", done.returncode == 1 and done.stderr.count("\n") == 1 and (work / "full/mine").exists(), done)
    done = release(first, "--parts", "wheels")
    expect("no such part", done.returncode == 2 and "'wheels' is none of all, source, wheel, packages, tarball" in done.stderr, done)
    shutil.rmtree(first / ".git")
    refused("no clone", first, f"{first} is no clone: a release is made of a commit")
finally:
    shutil.rmtree(work)
sys.exit("\n".join(wrong) or None)
