"""Move the source files to the places that plan.txt gives them, and merge them there.

    python tests/structure/move.py files    moves each file whole, with every import of it
    python tests/structure/move.py merge    makes one file of the files that meet in one place

Run from the root of a clean checkout: `files` on its parent commit, `merge` on the commit that
`files` made. What no rule covers is left to a third commit. ruff sorts and formats what is written.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent
ROOTS = ("webhook", "certs", "tests")
#: Other texts that name modules or files.
TEXTS = re.compile(r"\.(md|toml|yaml|yml|sh|in|json|css)$|(^|/)(Makefile|Dockerfile|run)$")
FUTURE = "from __future__ import annotations\n"


def git(*words: str) -> list[str]:
    """Return the lines that git prints."""
    return subprocess.run(
        ["git", *words], check=True, capture_output=True, text=True
    ).stdout.splitlines()


def plan() -> dict[str, list[str]]:
    """Return each target with its parts, as `plan.txt` has them."""
    targets: dict[str, list[str]] = {}
    for line in (HERE / "plan.txt").read_text().splitlines():
        if line.startswith("    "):
            targets[list(targets)[-1]].append(line.strip())
        elif not line.startswith("#"):
            targets[line] = []
    return targets


def module_of(path: str) -> str:
    """webhook/pod/path.py -> webhook.pod.path."""
    return path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def part_places(targets: dict[str, list[str]]) -> dict[str, str]:
    """Return where `files` moves each part: the first to its target, the others beside it."""
    places: dict[str, str] = {}
    taken = set(targets)
    for target, parts in targets.items():
        for part in parts:
            place = target
            if part != parts[0]:
                stem = Path(part).stem.replace("__init__", Path(part).parent.name)
                place = f"{Path(target).parent}/{stem}.py"
                if place in taken:
                    place = f"{Path(target).parent}/{Path(target).stem}_{stem}.py"
                assert place not in taken, place
                taken.add(place)
            places[part] = place
    return places


def test_places(modules: dict[str, str]) -> dict[str, str]:
    """Return where the unit tests of moved modules go: the same folders, the same names."""
    places: dict[str, str] = {}
    folders: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for old, new in modules.items():
        folders[str(Path(old).parent)][str(Path(new).parent)] += 1
    tests = git("ls-files", "tests/unit")
    for test in tests:
        path = Path(test)
        package = str(path.parent).removeprefix("tests/unit").strip("/")
        root = "certs" if package == "certs" else f"webhook/{package}".rstrip("/")
        stem = path.stem.removeprefix("test_")
        subject = f"{root}/{stem}.py"
        name = path.name
        if path.suffix == ".py" and subject in modules:
            place = Path(modules[subject])
            folder = str(place.parent)
            if name.startswith("test_") and place.stem not in ("__init__", stem) and MOVED[subject]:
                name = f"test_{place.stem}.py"
        elif path.suffix == ".py" and f"{root}/{stem}/__init__.py" in modules:
            folder = str(Path(modules[f"{root}/{stem}/__init__.py"]).parent)
        elif root in folders and root != "webhook":
            folder = max(folders[root], key=lambda one: folders[root][one])
        else:
            folder = nearest_folder(root, folders)
        if folder:
            inside = folder.removeprefix("webhook").strip("/")
            target = f"tests/unit/{inside}/{name}".replace("//", "/")
            if target != test:
                places[test] = target
    return places


#: Whether a module is alone in its target.
MOVED: dict[str, bool] = {}


def nearest_folder(root: str, folders: dict[str, dict[str, int]]) -> str:
    """Return where a folder of fixtures goes, with the folder above it."""
    tail = ""
    while "/" in root:
        if root in folders and root != "webhook":
            return max(folders[root], key=lambda one: folders[root][one]) + tail
        root, _, last = root.rpartition("/")
        tail = f"/{last}{tail}"
    return ""


def rewrite_imports(text: str, here: str, modules: dict[str, str], drop: set[str]) -> str:
    """Rewrite the imports of a Python file, and what else it says of modules and paths.

    `modules` maps modules by their dotted names; names from the modules in `drop` are defined in
    this very file, so that their imports go.
    """
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    spans: list[tuple[int, int, str]] = []
    renames: dict[str, str] = {}
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    bound |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if node.module.split(".")[0] not in ROOTS:
            continue
        grouped: dict[str, list[str]] = defaultdict(list)
        changed = False
        for alias in node.names:
            full = f"{node.module}.{alias.name}"
            bare = alias.name + (f" as {alias.asname}" if alias.asname else "")
            if full in modules:
                new = modules[full]
                package, _, stem = new.rpartition(".")
                local = alias.asname or alias.name
                changed = changed or new != full
                if alias.asname is None and stem != alias.name and stem not in bound:
                    renames[alias.name] = stem
                    local = stem
                grouped[package].append(stem if local == stem else f"{stem} as {local}")
            else:
                new = modules.get(node.module, node.module)
                changed = changed or new != node.module
                if new in drop:
                    assert alias.asname is None, (here, full)
                    changed = True
                    continue
                grouped[new].append(bare)
        if not changed:
            continue
        begin = starts[node.lineno - 1]
        end = starts[node.end_lineno or node.lineno]
        indent = " " * node.col_offset
        segment = text[begin:end]
        noqa = re.search(r"  # .*", segment)
        comment = noqa[0].rstrip("\n") if noqa else ""
        new_text = "".join(
            f"{indent}from {module} import {', '.join(names)}{comment}\n"
            for module, names in grouped.items()
        )
        spans.append((begin, end, new_text))
    spans.sort()
    pieces, at = [], 0
    for begin, end, new_text in spans:
        pieces.append(("text", text[at:begin]))
        pieces.append(("import", new_text))
        at = end
    pieces.append(("text", text[at:]))
    written = ""
    for kind, piece in pieces:
        written += rewrite_mentions(piece, modules) if kind == "text" else piece
    return rename_locals(written, renames) if renames else written


def rename_locals(text: str, renames: dict[str, str]) -> str:
    """Rename modules that are used by name: `unmeasured.X` -> `errors.X`."""
    lines = text.splitlines(keepends=True)
    places = [
        (node.lineno, node.col_offset, node.id)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name) and node.id in renames
    ]
    for number, column, name in sorted(places, reverse=True):
        line = lines[number - 1].encode()
        assert line[column:].startswith(name.encode())
        lines[number - 1] = (
            line[:column] + renames[name].encode() + line[column + len(name) :]
        ).decode()
    return "".join(lines)


_PATTERNS: dict[int, tuple[re.Pattern[str], dict[str, str]]] = {}


def rewrite_mentions(text: str, modules: dict[str, str]) -> str:
    """Rewrite modules and paths where a text mentions them."""
    if id(modules) not in _PATTERNS:
        table = {old: new for old, new in modules.items() if old != new}
        table |= PATHS
        words = sorted(table, key=len, reverse=True)
        joined = "|".join(map(re.escape, words))
        pattern = (
            re.compile(rf"(?<![\w./-])(?:{joined})(?![\w-]|\.\w+/)")
            if words
            else re.compile("(?!)")
        )
        _PATTERNS[id(modules)] = pattern, table
    pattern, table = _PATTERNS[id(modules)]
    return pattern.sub(lambda match: table[match[0]], text)


#: Paths as texts mention them, old to new.
PATHS: dict[str, str] = {}


def mentions(modules: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (path, new text) of each file whose imports or mentions change."""
    for path in git("ls-files"):
        if path.startswith("tests/structure/") or path.endswith(".lock"):
            continue
        if path == "CHANGELOG.md" or not Path(path).exists() or Path(path).is_symlink():
            continue
        if path.endswith(".py") and path.startswith(ROOTS):
            text = Path(path).read_text()
            new = rewrite_imports(text, path, modules, set())
        elif TEXTS.search(path) and "/golden/" not in path and "/fixtures/" not in path:
            text = Path(path).read_text()
            new = rewrite_mentions(text, modules)
        else:
            continue
        if new != text:
            yield path, new


def move_files() -> None:
    """Move each file whole."""
    targets = plan()
    for gone in targets.pop("-"):
        Path(gone).unlink()
    places = part_places(targets)
    for parts in targets.values():
        for part in parts:
            MOVED[part] = len(parts) == 1
    current = {path: path for path in git("ls-files", "webhook", "certs") if Path(path).exists()}
    moved_files = {path: places.get(path, path) for path in current}
    moved_files |= test_places({**moved_files, **places})
    PATHS.update({old: new for old, new in moved_files.items() if old != new})
    modules = {
        module_of(old): module_of(new) for old, new in moved_files.items() if old.endswith(".py")
    }
    for path, text in list(mentions(modules)):
        Path(path).write_text(text)
    contents = {
        new: (Path(old).read_bytes(), Path(old).stat().st_mode)
        for old, new in moved_files.items()
        if old != new
    }
    for old, new in moved_files.items():
        if old != new:
            Path(old).unlink()
    for new, (content, mode) in contents.items():
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        assert not Path(new).exists(), new
        Path(new).write_bytes(content)
        Path(new).chmod(mode)
    for folder in {
        Path(new).parent for new in contents if new.startswith("webhook") and new.endswith(".py")
    }:
        for room in (folder, *folder.parents):
            if str(room) != "." and not (room / "__init__.py").exists():
                (room / "__init__.py").write_text(f'"""{room.name}."""\n')


def merge_files() -> None:
    """Make one file of the parts of each target, which `files` has put side by side."""
    targets = {t: parts for t, parts in plan().items() if t != "-" and t.endswith(".py")}
    places = part_places(targets)
    modules: dict[str, str] = {}
    for path in git("ls-files", "webhook", "certs"):
        if path.endswith(".py"):
            modules[module_of(path)] = module_of(path)
    merged: dict[str, list[str]] = {}
    for target, parts in targets.items():
        if len(parts) > 1:
            merged[target] = [places[part] for part in parts]
            for place in merged[target]:
                modules[module_of(place)] = module_of(target)
                if place != target:
                    PATHS[place] = target
    for path, text in list(mentions(modules)):
        Path(path).write_text(text)
    for target, parts in merged.items():
        text = concatenated(target, parts)
        for part in parts:
            Path(part).unlink()
        Path(target).write_text(text)


def concatenated(target: str, parts: list[str]) -> str:
    """Return one file: the first docstring, all imports but those of each other, the bodies.

    The docstring of another part becomes a comment above its body.
    """
    own = module_of(target)
    read = {part: Part(Path(part).read_text(), own) for part in parts}
    docstring = read[parts[0]].docstring
    quoted = f'"""{docstring}\n"""' if "\n" in docstring else f'"""{docstring}"""'
    prefix = "r" if "\\" in docstring else ""
    imports = "".join(line for part in parts for line in read[part].imports)
    bodies = "\n\n\n".join(
        (comment(read[part].docstring) if part != parts[0] else "") + read[part].body.strip("\n")
        for part in in_order(parts, read)
    )
    return f"{prefix}{quoted}\n\n{FUTURE}\n{imports}\n{bodies}\n"


def comment(docstring: str) -> str:
    """Write a docstring as a comment; what is indented keeps its lines."""
    lines: list[str] = []
    for paragraph in docstring.split("\n\n"):
        if paragraph.startswith(("    ", "- ")):
            lines += [
                f"# {line}"[:100] if line[:1] != " " else f"#{line[1:]}"
                for line in paragraph.split("\n")
            ]
        else:
            lines += textwrap.wrap(paragraph, 98, initial_indent="# ", subsequent_indent="# ")
        lines.append("#")
    return "\n".join([*lines[:-1], "", ""])


class Part:
    """A file that is to be a part of another."""

    def __init__(self, text: str, own: str) -> None:
        text = rewritten_siblings(text, own)
        tree = ast.parse(text)
        self.docstring = (ast.get_docstring(tree) or "").strip()
        self.imports: list[str] = []
        lines = text.splitlines(keepends=True)
        taken: set[int] = set()
        for node in tree.body:
            first = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.Import | ast.ImportFrom) or (first and node is tree.body[0]):
                span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
                taken.update(span)
                source = "".join(lines[number - 1] for number in span)
                if not first and not source.startswith("from __future__"):
                    self.imports.append(source)
        self.body = "".join(
            line for number, line in enumerate(lines, 1) if number not in taken
        ).strip("\n")
        bodies = [node for node in tree.body if not isinstance(node, ast.Import | ast.ImportFrom)]
        self.defines = {name for node in bodies for name in defined(node)}
        self.needs = {
            name.id
            for node in bodies
            for name in executed(node)
            if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load)
        }


def defined(node: ast.stmt) -> list[str]:
    """Return the names that a statement of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", node)]
    return [
        name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)
    ]


def executed(node: ast.AST) -> Iterator[ast.AST]:
    """Walk what runs when a module is loaded: no bodies of functions, no annotations of theirs."""
    yield node
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
        for expression in (*node.decorator_list, *defaults):
            yield from executed(expression)
        return
    if isinstance(node, ast.Lambda):
        return
    for child in ast.iter_child_nodes(node):
        yield from executed(child)


def rewritten_siblings(text: str, own: str) -> str:
    """Leave out the imports from the file that this one becomes a part of."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == own and not is_package(own, node):
            assert all(alias.asname is None for alias in node.names), (own, ast.unparse(node))
            for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                lines[number - 1] = ""
    return "".join(lines)


def is_package(own: str, node: ast.ImportFrom) -> bool:
    """Return whether the import is of modules of a package, of which this file is `__init__`."""
    folder = Path(own.replace(".", "/"))
    return all((folder / f"{alias.name}.py").exists() for alias in node.names)


def in_order(parts: list[str], read: dict[str, Part]) -> list[str]:
    """Order parts by what they need when the module is loaded, else as the plan has them."""
    ordered: list[str] = []
    waiting = list(parts)
    while waiting:
        for part in waiting:
            others = [other for other in waiting if other != part]
            if not any(
                read[part].needs & (read[other].defines - read[part].defines) for other in others
            ):
                ordered.append(part)
                waiting.remove(part)
                break
        else:
            raise SystemExit(f"{waiting} need each other")
    return ordered


def main() -> None:
    """Move or merge; then sort and format."""
    {"files": move_files, "merge": merge_files}[sys.argv[1]]()
    ruff = str(Path(sys.executable).parent / "ruff")
    subprocess.run([ruff, "check", "-q", "--fix-only", "--fixable=I,F401", *ROOTS], check=True)
    subprocess.run([ruff, "check", "-q", "--select=PLC0415", "--add-noqa", *ROOTS], check=True)
    subprocess.run([ruff, "check", "-q", "--fix-only", "--fixable=I,RUF100", *ROOTS], check=True)
    subprocess.run([ruff, "format", "-q", *ROOTS], check=True)


if __name__ == "__main__":
    main()
