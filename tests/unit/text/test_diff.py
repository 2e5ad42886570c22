from webhook.text.diff import diff

BEFORE = "a: 1\nb: 2\nc: 3\n"


def test_no_change_is_no_output() -> None:
    """`diff` prints nothing for equal files either."""
    assert diff("pod.yaml", BEFORE, BEFORE) == ""


def test_a_change_is_a_unified_diff() -> None:
    """File names have git's prefixes, for `patch -p1`."""
    assert diff("pod.yaml", BEFORE, "a: 1\nb: 5\nc: 3\n") == (
        "--- a/pod.yaml\n+++ b/pod.yaml\n@@ -1,3 +1,3 @@\n a: 1\n-b: 2\n+b: 5\n c: 3\n"
    )


def test_a_missing_last_line_break_is_marked() -> None:
    """The mark is the same as in `diff -u`."""
    assert diff("x", "a: 1", "a: 1\nb: 2") == (
        "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a: 1\n\\ No newline at end of file\n"
        "+a: 1\n+b: 2\n\\ No newline at end of file\n"
    )


def test_only_line_feeds_end_a_line() -> None:
    """A form feed or a lone carriage return inside a value does not end one."""
    assert diff("x", "a: '\f\r\u2028'\n", "a: '\f\r\u2028'\nb: 1\n") == (
        "--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n a: '\f\r\u2028'\n+b: 1\n"
    )


def test_colors_are_those_of_git() -> None:
    """Added lines are green and removed ones red, even if they look like a heading."""
    output = diff("x", "-- b\nc\n", "++ b\nc\n", color=True).splitlines()
    assert output == [
        "\033[1m--- a/x\033[0m",
        "\033[1m+++ b/x\033[0m",
        "\033[36m@@ -1,2 +1,2 @@\033[0m",
        "\033[31m--- b\033[0m",
        "\033[32m+++ b\033[0m",
        " c",
    ]


def test_lines_are_the_texts_own_but_on_a_terminal() -> None:
    """`patch` gets the file's content; a terminal gets no escape sequence, nor one in a name."""
    before, after = "a: \x9b2J\n", "a: \x9b2J\nb: \u202ec\n"
    heading = "--- a/\\x1b.yaml\n+++ b/\\x1b.yaml\n@@ -1 +1,2 @@\n"
    assert diff("\x1b.yaml", before, after) == heading + " a: \x9b2J\n+b: \u202ec\n"
    output = diff("\x1b.yaml", before, after, terminal=True)
    assert output == heading + " a: \\x9b2J\n+b: \\u202ec\n"
