"""What mkdocs has to know beside docs/: the navigation, the pages of headers and Python modules, and those of files that documents name.

Every link in a document is a path in the repository, as a forge shows it. Here it leads to the page of that file.
"""

import posixpath
import re
import shutil
import subprocess
from pathlib import Path

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

import headers

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(?<=\]\()([^)\s#:]+)(?=[)#])")
LANGUAGES = {".cpp": "cpp", ".hpp": "cpp", ".h": "c", ".py": "python", ".pyi": "python", ".yaml": "yaml", ".json": "json", ".sbatch": "bash"}
sources: dict[str, str] = {}  # of a page: the path in the repository from which its links go out


def page_of(path: str) -> str:
    """The page of a file, or of a folder."""
    if (ROOT / path).is_dir():
        path += "/README.md"
    if path in ("README.md", "docs/README.md"):
        return "index.md" if path == "README.md" else "contents.md"
    if path.startswith("docs/"):
        return path[5:] + ".md" * path.startswith("docs/man/")
    if path.startswith(headers.INCLUDE + "/"):
        return f"api/{posixpath.basename(path)}.md"
    if module := re.fullmatch(r"src/python/(col.*?)(/__init__|/_col)?\.pyi?", path):
        return f"api/{module[1].replace('/', '.')}.md"
    return "source/" + (path if path.endswith(".md") else path + ".md")


def linked(path: str, text: str) -> list[str]:
    """Files and folders of the repository that a document names."""
    found = (posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) for target in LINK.findall(text))
    return [target for target in found if not target.startswith("..") and (ROOT / target).exists()]


def text_of(path: str) -> str:
    file = ROOT / path
    if path.endswith(".md") and file.exists():
        return file.read_text()
    if path.endswith("/README.md"):  # a folder that has none
        folder = posixpath.dirname(path)
        names = subprocess.run(["git", "ls-files", "."], cwd=file.parent, check=True, capture_output=True, text=True).stdout.split()
        titles = {name: re.match(r"# (.*)|", (file.parent / name).read_text())[1] or name for name in names}
        return f"# {folder.removeprefix('docs/').capitalize()}\n\n" + "\n".join(f"- [{title}]({name})" for name, title in sorted(titles.items()))
    if path.startswith("docs/man/"):
        made = subprocess.run(["mandoc", "-T", "markdown", file], check=True, capture_output=True, text=True).stdout
        return f"# {file.stem}\n" + re.sub(r"^#", "##", made.partition("\n")[2], flags=re.M)
    if page_of(path).startswith("api/"):
        name = page_of(path)[4:-3]
        return f"# {name}\n\n::: {name}\n"
    return f"# {path}\n\n````` {LANGUAGES.get(file.suffix, 'text')}\n{file.read_text()}\n`````\n"


def on_config(config):
    if not shutil.which("mandoc"):
        raise PluginError("mandoc, which reads docs/man, is not installed: apt-get install mandoc")
    parts = {"Home": [{"col": "index.md"}, {"All documents": "contents.md"}]}
    seen = {"index.md", "contents.md"}
    for heading, text in re.findall(r"^## (.*)\n((?:(?!^## ).*\n?)*)", (ROOT / "docs/README.md").read_text(), flags=re.M):
        parts[heading] = []
        for title, target in re.findall(r"\[([^\]]+)\]\(([^)#\s]+)\)", text):
            page = page_of(posixpath.normpath("docs/" + target))
            if page not in seen:
                parts[heading].append({title.strip("`"): page})
            seen.add(page)
    config.nav = [{title: pages} for title, pages in parts.items()]
    return config


def on_files(files, config):
    files.remove(files.get_file_from_path("README.md"))
    for name in ("page.css", "iframe-worker.js"):
        files.append(File.generated(config, name, abs_src_path=str(ROOT / "scripts/page" / name)))
    known = headers.Headers(ROOT)
    for name in known.pages:
        files.append(File.generated(config, f"api/{name}.md", content=known.page(name)))
    sources.update({file.src_uri: "docs/" + file.src_uri for file in files.documentation_pages() if not file.src_uri.startswith("api/")})
    waiting = ["README.md", "docs/README.md", *sources.values()]
    while waiting:
        path = waiting.pop()
        page, text = page_of(path), text_of(path)
        if not files.get_file_from_path(page):
            files.append(File.generated(config, page, content=text))
        sources[page] = path
        for target in linked(path, text):
            if not files.get_file_from_path(page_of(target)):
                waiting.append(target + "/README.md" * (ROOT / target).is_dir())
    return files


def on_page_markdown(markdown, page, config, files):
    path = sources.get(page.file.src_uri)
    if not path:
        return markdown

    def of_site(found):
        targets = linked(path, f"]({found[0]})")
        return posixpath.relpath(page_of(targets[0]), posixpath.dirname(page.file.src_uri)) if targets else found[0]

    return LINK.sub(of_site, markdown)
