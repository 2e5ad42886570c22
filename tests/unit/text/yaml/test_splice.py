"""Tests of patching a document's text: every byte outside of the changes stays."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

import pytest

from webhook.model.decision import PatchOp
from webhook.preview.workloads.patch import apply_patches
from webhook.text.yaml.documents import DOCUMENT_LIMITS, read_documents
from webhook.text.yaml.edits import ensure_final_newline
from webhook.text.yaml.splice import Spliced, fallback_cause, splice
from webhook.text.yaml.tree import LineIndex, roots_of


def add(path: str, value: Any) -> PatchOp:
    """Make an `add` operation."""
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> PatchOp:
    """Make a `replace` operation."""
    return {"op": "replace", "path": path, "value": value}


def remove(path: str) -> PatchOp:
    """Make a `remove` operation."""
    return {"op": "remove", "path": path}


def spliced(text: str, *ops: PatchOp) -> Spliced:
    """Apply operations to a text's only document, and check that the result reads as patched."""
    (document,) = read_documents(text)
    result = splice(document, apply_patches(document.value, [((), ops)]))
    (after,) = read_documents(result.text)
    assert after.value == apply_patches(document.value, [((), ops)])
    return result


def check(before: str, after: str, *ops: PatchOp) -> None:
    """Check that the operations turn one text into the other, without a warning."""
    assert spliced(dedent(before), *ops) == Spliced(dedent(after), written_anew=False, warning="")


def test_nothing_to_do_leaves_the_text() -> None:
    """It also stays if an operation writes the value that is there."""
    check("a:   1 # one\n", "a:   1 # one\n")
    check("a:   1 # one\n", "a:   1 # one\n", replace("/a", 1))


def test_keys_are_added_below_the_last_one() -> None:
    """They get the mapping's indentation, with the lines of their values below."""
    check(
        """\
        spec:
            limits:
                a: 1  # one
                # b: 2
            x: 1
        """,
        """\
        spec:
            limits:
                a: 1  # one
                rdma/hca: 1
                # b: 2
            x: 1
            deep:
                add:
                - IPC_LOCK
                - name: A
                  value: "1"
                - - 1
                  - {}
                none: []
                text: |
                    one

                    two
        """,
        add("/spec/limits/rdma~1hca", 1),
        add(
            "/spec/deep",
            {
                "add": ["IPC_LOCK", {"name": "A", "value": "1"}, [1, {}]],
                "none": [],
                "text": "one\n\ntwo\n",
            },
        ),
    )


def test_comments_deeper_than_the_new_line_stay_where_they_belong() -> None:
    """A field that is commented out belongs to the item above it."""
    check(
        """\
        env:
        - name: A
          value: x
          # valueFrom: y
        # the rank
        - name: B
        """,
        """\
        env:
        - name: A
          value: x
          # valueFrom: y
        - name: NEW
        # the rank
        - name: B
        """,
        add("/env/1", {"name": "NEW"}),
    )


def test_items_are_put_in_front_above_the_comments() -> None:
    """The comment above the first item stays directly above it."""
    check(
        """\
        env:
          # the rank
          - name: A
        x:
          - 1
        """,
        """\
        env:
          - name: NEW
            value: "true"
          # the rank
          - name: A
        x:
          - 1
          - 2
        """,
        add("/env/0", {"name": "NEW", "value": "true"}),
        add("/x/-", 2),
    )


def test_a_list_in_a_list_is_edited() -> None:
    """This works even if a list's first dash is not at the beginning of its line."""
    check(
        "a:\n- - 1\n  - 2\n- - 3\n",
        "a:\n- - 0\n  - 1\n  - 2\n  - 9\n- - 4\n",
        add("/a/0/0", 0),
        add("/a/0/-", 9),
        replace("/a/1/0", 4),
    )


def test_entries_are_removed_with_their_lines() -> None:
    """Comments on other entries stay; a key on the line of a dash is removed without the dash."""
    check(
        """\
        limits:
          # above
          memory: 1Gi  # much
          gpu: 8
        args:
        - a:
            c: 1
          # about d
          d: 1
        - a: 1
          # about b
          b: 1
          c: 1
        - - 1
          - 2
        items:
        - x
        # about y
        - y
        last: |
          text

        """,
        """\
        limits:
          # above
          gpu: 8
        args:
        - # about d
          d: 1
        - c: 1
        - - 2
        items:
        # about y
        - y

        """,
        remove("/limits/memory"),
        remove("/args/0/a"),
        remove("/args/1/a"),
        remove("/args/1/b"),
        remove("/args/2/0"),
        remove("/items/0"),
        remove("/last"),
    )


def test_the_first_entry_of_a_document_is_removed() -> None:
    """The first entry has no line above it."""
    check("a: 1\nb: 2\n", "b: 2\n", remove("/a"))


def test_the_last_entry_is_removed_and_another_is_added() -> None:
    """The added line replaces the removed one, at every level."""
    check(
        "a:\n  b:\n    c: 1\n    memory: 1Gi\nd: 1\n",
        "a:\n  b:\n    c: 1\n    e: 2\n  f: 3\nd: 1\n",
        remove("/a/b/memory"),
        add("/a/b/e", 2),
        add("/a/f", 3),
    )


def test_what_becomes_empty_is_written_empty() -> None:
    """A key with nothing below it would be null."""
    check("a:\n  b: 1\nc:\n- 1\nd: {e: 1}\n", "a: {}\nc: []\nd: {}\n",
          remove("/a/b"), remove("/c/0"), remove("/d/e"))  # fmt: skip


def test_everything_removed_leaves_an_empty_mapping() -> None:
    """The document is still a mapping."""
    check("# c\na: 1\n# d\n", "# c\n{}\n# d\n", remove("/a"))


def test_everything_can_be_replaced() -> None:
    """The comments around it stay."""
    check("# c\na: 1\n# d\n", "# c\nb: 2\n# d\n", remove("/a"), add("/b", 2))


@pytest.mark.parametrize("empty", ["", " null", " ~", " {}", " []"])
def test_empty_values_are_filled_in_block_style(empty: str) -> None:
    """A trailing comment stays on the line of the key."""
    check(f"a:{empty} # c\nb: 1\n", "a: # c\n  c: 1\nb: 1\n", replace("/a", {"c": 1}))
    check(f"a:{empty} # c\nb: 1\n", "a: # c\n- c: 1\nb: 1\n", replace("/a", [{"c": 1}]))
    check(f"a:{empty} # c\nb: 1\n", 'a: "1" # c\nb: 1\n', replace("/a", "1"))
    check(f"a:\n-{empty} # c\n", "a:\n- b: 1 # c\n  c: 2\n", replace("/a/0", {"b": 1, "c": 2}))


def test_values_of_one_kind_become_another() -> None:
    """Lines below the key are added or removed as needed."""
    check(
        """\
        a:
          - 1
        b: |
          text
        c: "x"
        d:
          # below
          "x"
        e:
          f: 1
        """,
        """\
        a: 1
        b: x
        c: |-
          two
          lines
        d:
          # below
          z
        e:
          - 1
        """,
        replace("/a", 1),
        replace("/b", "x"),
        replace("/c", "two\nlines"),
        replace("/d", "z"),
        replace("/e", [1]),
    )


def test_words_of_a_script_are_edited_in_their_line() -> None:
    """The other lines of a literal block stay, even blank ones that contain spaces."""
    check(
        "a:\n  - |  # script\n     set -e\n\n     mpirun -np 2 \\\n       x\n   \n\nb: 1\n",
        "a:\n  - |  # script\n     set -e\n\n     mpirun -m a 0 -np 2 \\\n       x\n   \n\nb: 1\n",
        replace("/a/0", "set -e\n\nmpirun -m a 0 -np 2 \\\n  x\n"),
    )


@pytest.mark.parametrize(
    ("new", "after"),
    [
        ("0\n1\n2\n", "a: |\n  0\n  1\n  2\n"),
        ("1\n2\n3\n", "a: |\n  1\n  2\n  3\n"),
        ("1\n\n2\n", "a: |\n  1\n\n  2\n"),
        ("2\n1\n2\n", "a: |\n  2\n  1\n  2\n"),
        ("1\n2", "a: |-\n  1\n  2\n"),
        ("1\n2\n\n", 'a: "1\\n2\\n\\n"\n'),
        ("1\n", "a: |\n  1\n"),
        ("1", 'a: "1"\n'),
    ],
)
def test_lines_of_a_literal_block_come_and_go(new: str, after: str) -> None:
    """If the style of the block no longer fits, the value is rewritten."""
    check("a: |\n  1\n  2\n", after, replace("/a", new))


def test_words_of_a_folded_script_are_edited_in_their_line() -> None:
    """The position in the text is found by counting characters other than white space."""
    check(
        "a: >-\n  mpirun -np 2\n  -x A\n  run\nb: mpirun\n"
        "  -np 2\nc: one\n  two\nd: >\n  one\n  two",
        "a: >-\n  mpirun -np 2\n  -mca a 0 -x A\n  run\nb: mpirun\n"
        "  -mca a 0 -np 2\nc: one\n  x two\nd: >\n  one\n  two x",
        replace("/a", "mpirun -np 2 -mca a 0 -x A run"),
        replace("/b", "mpirun -mca a 0 -np 2"),
        replace("/c", "one x two"),
        replace("/d", "one two x"),
    )


def test_a_folded_script_that_changes_otherwise_is_written_anew() -> None:
    """It is also rewritten if a new word would change the meaning or needs its own line."""
    check("a: >\n  one\n  two\n", "a: |\n  one  two\n", replace("/a", "one  two\n"))
    check("a: >-\n  one\n  two\n", "a: one\n", replace("/a", "one"))
    check("a: >\n  one\n  two\n", "a: |\n  one\n  x two\n", replace("/a", "one\nx two\n"))


def test_flow_collections_stay_flow_collections() -> None:
    """New strings are quoted if their neighbors are."""
    check(
        """\
        command: ["sh", "-c"] # run
        args: [a, b, c,]
        limits: {gpu: 8, memory: 1Gi}
        add: {x: [], w: {}, z: }
        env: [{name: A, value: 'x'}]
        """,
        """\
        command: ["exec", "sh", "-e", "-c"] # run
        args: [b, "1",]
        limits: {gpu: 8, rdma/hca: 1}
        add: {x: [IPC_LOCK], w: {a: [1, {b: null}]}, z: "c: d"}
        env: [{name: A, value: b}, {name: B}]
        """,
        add("/command/0", "exec"),
        add("/command/2", "-e"),
        remove("/args/0"),
        replace("/args/1", "1"),
        remove("/limits/memory"),
        add("/limits/rdma~1hca", 1),
        add("/add/x/0", "IPC_LOCK"),
        add("/add/w/a", [1, {"b": None}]),
        replace("/add/z", "c: d"),
        replace("/env/0/value", "b"),
        add("/env/-", {"name": "B"}),
    )


def test_flow_collections_over_several_lines() -> None:
    """Each entry gets its own line if the others have one; tabs do not matter here."""
    check(
        "a: {\n  b: 1, # one\n\tc: [\n    x,\n  ]\n}\n",
        "a: {\n  b: 1, # one\n\tc: [\n    w,\n    x,\n    z,\n  ],\n  d: {e: 1}\n}\n",
        add("/a/c/0", "w"),
        add("/a/c/-", "z"),
        add("/a/d", {"e": 1}),
    )


def test_everything_of_a_flow_collection_is_replaced_in_place() -> None:
    """This works even if none of its entries stays."""
    check("a: {b: [1], c: {d: 1}}\n", "a: {b: [2, 3], c: {e: 1}}\n",
          replace("/a/b", [2, 3]), replace("/a/c", {"e": 1}))  # fmt: skip


def test_windows_line_ends_stay() -> None:
    """New lines have them too, including those in literal blocks."""
    check(
        "a:\r\n  b: 1\r\n  d: |+\r\n    x\r\nc:\r\n- 1\r\n",
        "a:\r\n  d: |+\r\n    x\r\n  e: |\r\n    1\r\n    2\r\nc:\r\n- 0\r\n- 1\r\n- 2\r\n",
        remove("/a/b"),
        add("/a/e", "1\n2\n"),
        add("/c/0", 0),
        add("/c/-", 2),
    )


@pytest.mark.parametrize("tail", ["", "\n", "\n\n", "  # c", "\n# c\n", "\n# c", "\n...\n---\n"])
def test_the_end_of_a_text(tail: str) -> None:
    """A last line without a line break gets one only if another line follows."""
    below, _, after = tail.partition("\n")
    broken = f"\n{after}" if "\n" in tail else ""
    check(f"---\na:\n  b: 1{tail}", f"---\na:\n  b: 1{below}\n  c: 2\nd: 3{broken}",
          add("/a/c", 2), add("/d", 3))  # fmt: skip


def test_an_alias_is_replaced_by_what_it_becomes() -> None:
    """An edit of the anchor is made in place, while an edited alias is written out."""
    check(
        "a: &s x\nb: *s\nc: [*s]\n",
        "a: &s x\nb: z\nc: [z]\n",
        replace("/b", "z"),
        replace("/c/0", "z"),
    )
    check(
        "a: &r\n  x: 1\nb: *r # the same\n",
        "a: &r\n  x: 1\n  w: 2\nb: # the same\n  x: 1\n  z: 2\n",
        add("/a/w", 2),
        add("/b/z", 2),
    )


def test_merged_entries_are_overridden() -> None:
    """`<<` stays, and a changed entry is written out next to it."""
    check(
        "a: &r {x: {v: 1}, w: 1}\nb:\n  <<: *r\n",
        "a: &r {x: {v: 1}, w: 1}\nb:\n  <<: *r\n  x:\n    v: 2\n",
        replace("/b/x/v", 2),
    )


def test_an_anchor_whose_twin_must_stay_has_the_document_rewritten() -> None:
    """An edit of the anchor would also change its alias; comments around the document stay."""
    text = "# head\n---\na: &r\n  x: 1 # one\nb: *r # the same\n# tail\n"
    warning = (
        "rewritten without its comments and layout, because on line 3 the patch edits below the "
        "anchor &r, and its aliases would change too"
    )
    assert spliced(text, add("/a/w", "2")) == Spliced(
        f'# head\n---\n# {warning}\na:\n  x: 1\n  w: "2"\nb:\n  x: 1\n# tail\n',
        written_anew=True,
        warning=warning,
    )


@pytest.mark.parametrize(
    ("text", "old", "new", "warning"),
    [
        (
            "a:\n- &x {b: 1}\n- c: *x\n",
            {"a": [{"b": 1}, {"c": {"b": 1}}]},
            {"a": [{"b": 1}, {"c": {"b": 3}}]},
            "on line 3 the patch edits below the alias *x, and its anchor would change too",
        ),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n",
            {"a": {"b": 1}, "c": {"b": 1}},
            {"a": {"b": 1}, "c": {}},
            "on line 3 the patch edits a mapping with a merge key (<<)",
        ),
        (
            "a: 1\na: 2\n",
            {"a": 2},
            {"a": 3},
            "on line 2 the patch edits the key a, which occurs twice",
        ),
        ("? a\n: 1\n", {"a": 1}, {}, "it is written in a way that cannot be edited in place"),
    ],
)
def test_the_cause_is_what_stands_where_the_patch_edits(
    text: str, old: dict[str, Any], new: dict[str, Any], warning: str
) -> None:
    """The message names the likeliest of several causes, with its line."""
    (root,) = roots_of(text, DOCUMENT_LIMITS)
    assert fallback_cause(root.node, old, new, LineIndex(text)) == warning


@pytest.mark.parametrize(
    ("text", "ended"),
    [
        ("a: |\n  x", "a: |-\n  x\n"),
        ("a: |+\n  x", "a: |-\n  x\n"),
        ("a: >2\n   x", "a: >2-\n   x\n"),
        ("a: &b |-\n  x", "a: &b |-\n  x\n"),
        ("a: |\n  x\n", "a: |\n  x\n"),
        ("a: x", "a: x\n"),
        ("", ""),
        ('{"a": "\\u002f"}', '{"a": "\\u002f"}\n'),
        ("a: [", "a: [\n"),
    ],
)
def test_a_line_break_at_the_end_changes_no_value(text: str, ended: str) -> None:
    """A block at the end gets a header that keeps the line break out of its string."""
    assert ensure_final_newline(text) == ended


def test_a_cause_has_its_line_in_the_input() -> None:
    """The document may be anywhere in its input."""
    text = "x: 1\n---\n# c\na: &r\n  x: 1\nb: *r\n"
    _, document = read_documents(text)
    warning = splice(document, {"a": {"x": 2}, "b": {"x": 1}}).warning
    assert "on line 4 the patch edits below the anchor &r" in warning
    assert text.splitlines()[3] == "a: &r"


def test_a_merged_entry_cannot_be_removed_without_writing_anew() -> None:
    """YAML cannot express it; a flow mapping on the line of the marker gets its own lines."""
    result = spliced("--- {a: &r {x: 1, w: 1}, b: {<<: *r, z: 1}}\n", remove("/b/x"))
    assert result.written_anew
    assert result.text.startswith("---\n# rewritten")
    assert result.text.endswith("\na:\n  x: 1\n  w: 1\nb:\n  z: 1\n  w: 1\n")


def test_explicit_keys_are_written_anew() -> None:
    """`? key` is valid YAML, but hardly anybody writes it."""
    assert spliced("? a\n: b\nc: 1\n", remove("/a")).written_anew


def test_of_a_repeated_key_the_last_one_is_edited() -> None:
    """The last one counts; removing the key removes both."""
    check("a: 1\nb: 1\na: 2\n", "a: 1\nb: 1\na: 3\n", replace("/a", 3))
    check("a: 1\nb: 1\na: 2\n", "b: 1\n", remove("/a"))


def test_json_is_edited_in_place() -> None:
    """An entry gets its own line if the others have one, and its value is indented JSON."""
    check(
        '{\n  "a": {"b": 1, "m": "x"},\n  "c": [\n    "d"\n  ]\n}\n',
        '{\n  "a": {"b": 1, "n": [1]},\n  "c": [\n    "d",\n    "true"\n  ],\n'
        '  "e": {\n    "f": null\n  }\n}\n',
        remove("/a/m"),
        add("/a/n", [1]),
        add("/c/-", "true"),
        add("/e", {"f": None}),
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": "\\ud83d\\ude00"}', '{"a": "\U0001f600", "b": 1}\n'),
        ('{\n\t"a": "\\ud83d\\ude00"\n}', '{\n\t"a": "\U0001f600",\n\t"b": 1\n}\n'),
    ],
)
def test_json_with_escapes_that_yaml_lacks_is_dumped(before: str, after: str) -> None:
    """The indentation is kept, and there is no warning, since JSON has no comments to lose."""
    assert spliced(before, add("/b", 1)) == Spliced(after, written_anew=True, warning="")


def test_pods_are_patched_where_they_stand() -> None:
    """Pointers begin at the pod; several pods of one document are patched together."""
    text = dedent(
        """\
        kind: List
        items:
        # the first
        - spec:
            containers: [{name: a}]
        - spec:
            containers:
            - name: b
              securityContext:
        """
    )
    (document,) = read_documents(text)
    capabilities = {"capabilities": {"add": ["IPC_LOCK"]}}
    ops = [add("/spec/containers/0/securityContext", capabilities), add("/spec/a~0b", "1")]
    assert splice(
        document, apply_patches(document.value, [(("items", 0), ops), (("items", 1), ops)])
    ).text == dedent(
        """\
        kind: List
        items:
        # the first
        - spec:
            containers: [{name: a, securityContext: {capabilities: {add: [IPC_LOCK]}}}]
            a~b: "1"
        - spec:
            containers:
            - name: b
              securityContext:
                capabilities:
                  add:
                  - IPC_LOCK
            a~b: "1"
        """
    )


def test_inserted_words_that_occur_later_again_do_not_move_others() -> None:
    """For example, `-mca` is often there already, for another parameter."""
    check(
        "a:\n- mpirun\n- -np # how many\n- -mca\n- pml\n- ob1\n",
        'a:\n- mpirun\n- -mca\n- coll\n- "0"\n- -np # how many\n- -mca\n- pml\n- ucx\n',
        add("/a/1", "-mca"),
        add("/a/2", "coll"),
        add("/a/3", "0"),
        replace("/a/7", "ucx"),
    )


def test_items_of_one_name_are_the_same_item() -> None:
    """A variable that changes keeps its lines while others are added and removed."""
    check(
        "env:\n- name: A # a\n  value: x\n- name: B\n- name: C\n",
        "env:\n- name: A # a\n  value: z\n- name: D\n- name: E\n",
        replace("/env/0/value", "z"),
        remove("/env/1"),
        remove("/env/1"),
        add("/env/1", {"name": "D"}),
        add("/env/2", {"name": "E"}),
    )


def test_comments_at_the_very_end_are_passed() -> None:
    """A new item comes after them, even if the text ends with such a comment."""
    check("a:\n- b: 1\n  # c: 2", "a:\n- b: 1\n  # c: 2\n- d", add("/a/-", "d"))


def test_lists_too_long_to_compare_are_still_right() -> None:
    """If thousands of items change in two places, all those between them are rewritten."""
    items = "".join(f"- {number}\n" for number in range(1500))
    result = spliced(f"a:\n{items}", replace("/a/1", -1), add("/a/1400", "x"))
    assert not result.written_anew
