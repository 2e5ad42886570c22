"""`rdma-webhook why` on files, and with an API server over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.command_line import Answer, run_command
from tests.integration.answers_api import AnswersApi
from tests.integration.kubeconfig import KUBECONFIG
from tests.unit.diagnose.why.pods import (
    ASKED,
    OWNED,
    configuration,
    event,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from webhook.config import EXAMPLE
from webhook.diagnose.codes import CODE_NAMES
from webhook.diagnose.tools.known_lines import TRANSPORTS
from webhook.diagnose.why.output import why_schema

WIDTH = 100
VALIDATOR = Draft202012Validator(json.loads(why_schema()))


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the output equally wide everywhere, without a current kubeconfig."""
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.delenv("KUBECONFIG", raising=False)


def run(*arguments: str, stdin: str = "") -> Answer:
    """Run the command."""
    return run_command("why", *arguments, stdin=stdin)


def form(*arguments: str, **how: Any) -> tuple[int, dict[str, Any]]:
    """Run the command with -o json; return the exit code and the answer."""
    code, out, _ = run(*arguments, "-o", "json", **how)
    answer = json.loads(out)
    VALIDATOR.validate(answer)
    return code, answer


def written(folder: Path, *objects: dict[str, Any]) -> str:
    """Write objects as kubectl prints them, and return the file's name."""
    file = folder / "pods.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    return str(file)


def test_a_pod_that_is_equipped(tmp_path: Path) -> None:
    """Exit code 0."""
    code, answer = form("-f", written(tmp_path, pod_in_cluster()))
    assert code == 0
    assert [pod["rdma"] for pod in answer["pods"]] == ["yes"]


@pytest.mark.parametrize(
    "pod",
    [
        pod_in_cluster(status("no", "FabricUnknown")),
        pod_in_cluster(status("unsure", "MemlockUnknown")),
        pod_without_call(),
    ],
)
def test_a_pod_that_is_not(tmp_path: Path, pod: dict[str, Any]) -> None:
    """Exit code 1, also if one of several is not."""
    assert run("-f", written(tmp_path, pod))[0] == 1
    assert run("-f", written(tmp_path, pod_in_cluster(), pod))[0] == 1


def test_standard_input() -> None:
    """YAML from kubectl comes through a pipe."""
    text = json.dumps(pod_in_cluster(status("none", "Launcher")))
    code, out, err = run("-f", "-", stdin=text)
    assert (code, err) == (0, "")
    assert out.startswith("Pod lab/train-0\n  ✔ The pod itself needs no RDMA: ")


def test_several_files(tmp_path: Path) -> None:
    """A namespace in one file applies to the pods in another."""
    pods = written(tmp_path, pod_without_call())
    (tmp_path / "ns.json").write_text(json.dumps(namespace({})))
    _, answer = form("-f", pods, "-f", str(tmp_path / "ns.json"))
    assert answer["pods"][0]["answer"]["code"] == "NamespaceNotLabeled"


def test_codes() -> None:
    """Exit code 0; several codes and JSON."""
    code, out, _ = run("FabricAmbiguous", "NoDeviceFound")
    assert code == 0
    assert out.startswith("FabricAmbiguous\n  The pod has no RDMA")
    assert "\n\nNoDeviceFound\n  In a log: NCCL found no RDMA device" in out
    code, answer = form("EnvFrom")
    assert code == 0
    assert [row["part"] for row in answer["codes"][0]["rows"]] == ["env", "hcoll", "nvlink"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "missing POD, KIND/NAME or CODE (see rdma-webhook why --help)"),
        (["--codes", "train"], "--codes takes neither pods nor codes"),
        (["--codes", "-f", "pods.yaml"], "--codes takes neither pods nor codes"),
        (["FabricAmbigous"], "did you mean FabricAmbiguous"),
        (["-f", "missing.yaml"], "missing.yaml: no such file or directory"),
        (
            ["train", "--kubeconfig", "missing"],
            "the kubeconfig missing does not exist (set --kubeconfig)",
        ),
        (["deplyment/train"], "'deplyment' is not a known kind of controller (did you mean"),
        (["secret/train"], "not a known kind of controller; pass one of its pods"),
        (["job/train/x"], "'job/train/x' is not of the form KIND/NAME"),
        (["job/"], "'job/' is not of the form KIND/NAME"),
        (["train", "--kubeconfig", "{kubeconfig}", "--context", "y"], "cannot connect with "),
    ],
    ids=str,
)
def test_wrong_usage(tmp_path: Path, arguments: list[str], message: str) -> None:
    """Exit code 2, and one line that names the remedy."""
    file = tmp_path / "config"
    file.write_text(KUBECONFIG % 9)
    given = [argument.replace("{kubeconfig}", str(file)) for argument in arguments]
    code, out, err = run(*given)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "text",
    ["", "a: b", "[1]", "{", "kind: Job\napiVersion: batch/v1", "\x00", "kind: List\nitems: x"],
)
def test_nonsense(text: str) -> None:
    """A file without a pod is refused with a hint."""
    code, out, err = run("-f", "-", stdin=text)
    assert (code, out) == (2, "")
    assert err.startswith("rdma-webhook: error: ")


def test_a_workload_is_no_pod(tmp_path: Path) -> None:
    """The error names the command for it."""
    _, _, err = run("-f", written(tmp_path, job()))
    assert "contains no pods; pass the output of kubectl get pod -o yaml" in err
    assert "rdma-webhook preview" in err


def test_fabrics(tmp_path: Path) -> None:
    """With -c, the answer has what would be decided today."""
    gpu: dict[str, Any] = {"resources": {"limits": {"nvidia.com/v100": "1"}}}
    pods = written(tmp_path, pod_in_cluster(metadata=OWNED), job(asked=ASKED, **gpu))
    _, answer = form("-f", pods, "-c", str(EXAMPLE))
    (chapter,) = (
        chapter for chapter in answer["pods"][0]["chapters"] if chapter["name"] == "redecision"
    )
    assert chapter["findings"][0]["code"] == "SameToday"


LAB = "/api/v1/namespaces/lab"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AnswersApi]:
    """Serve a pod of the namespace lab; its kubeconfig is `config`."""
    with AnswersApi({f"{LAB}/pods/train-0": pod_in_cluster()}) as api:
        text = KUBECONFIG % api.port
        (tmp_path / "config").write_text(
            text.replace("{cluster: c, user: u}", "{cluster: c, user: u, namespace: lab}")
        )
        yield api


def test_the_namespace_of_the_context(tmp_path: Path, server: AnswersApi) -> None:
    """It is the default, as for kubectl; -n and --context choose others."""
    access = ("--kubeconfig", str(tmp_path / "config"))
    assert run("train-0", *access)[0] == 0
    assert run("pod/train-0", *access, "--context", "x")[0] == 0
    code, _, err = run("train-0", *access, "-n", "other")
    assert code == 2
    assert "you do not have the right to read pod train-0 in namespace other" in err
    assert server.asked[-1] == "/api/v1/namespaces/other/pods/train-0"


def test_rights_that_are_lacking(tmp_path: Path, server: AnswersApi) -> None:
    """The answer names each missing right, and nothing else is lost."""
    server.answers[f"{LAB}/pods/train-0"] = pod_without_call(metadata=OWNED)
    code, out, err = run("train-0", "--kubeconfig", str(tmp_path / "config"), "--logs")
    assert (code, err) == (1, "")
    end = out[out.index("What could not be read") :].splitlines()
    assert [line.strip(" ·") for line in end[1:]] == [
        "You do not have the right to read the kinds of batch/v1.",
        "You do not have the right to read namespace lab.",
        "You do not have the right to read mutatingwebhookconfigurations.",
        "You do not have the right to read the events of Pod train-0.",
    ]


def test_logs_of_the_cluster(tmp_path: Path, server: AnswersApi) -> None:
    """The log decides whether RDMA is in use."""
    states = [{"name": "main", "state": {"running": {}}, "restartCount": 0}]
    server.answers[f"{LAB}/pods/train-0"] = pod_in_cluster(containerStatuses=states)
    server.answers[f"{LAB}/pods/train-0/log"] = f"hello\n{TRANSPORTS[1].example}\n"
    code, answer = form("train-0", "--kubeconfig", str(tmp_path / "config"), "--logs")
    (pod,) = answer["pods"]
    assert (code, pod["rdma"], pod["answer"]["code"]) == (1, "no", "SocketsInUse")
    assert f"{LAB}/pods/train-0/log?container=main&limitBytes=4194304" in server.asked


def test_exec_without_the_right(tmp_path: Path, server: AnswersApi) -> None:
    """The answer explains why a container could not be inspected."""
    states = [{"name": "main", "state": {"running": {}}, "restartCount": 0}]
    server.answers[f"{LAB}/pods/train-0"] = pod_in_cluster(containerStatuses=states)
    _, answer = form("train-0", "--kubeconfig", str(tmp_path / "config"), "--exec")
    (chapter,) = (
        chapter for chapter in answer["pods"][0]["chapters"] if chapter["name"] == "processes"
    )
    (finding,) = chapter["findings"]
    assert finding["code"] == "NotInspected"
    assert "403" in finding["text"]


def test_why_it_was_not_called(tmp_path: Path, server: AnswersApi) -> None:
    """With the right to read them, the namespace and the webhook's configuration decide."""
    server.answers |= {
        f"{LAB}/pods/train-0": pod_without_call(),
        LAB: namespace(),
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations": {
            "items": [configuration("Ignore")]
        },
        f"{LAB}/events": {"items": []},
    }
    _, answer = form("train-0", "--kubeconfig", str(tmp_path / "config"))
    assert answer["pods"][0]["answer"]["code"] == "DidNotAnswer"
    assert "unread" not in [chapter["name"] for chapter in answer["pods"][0]["chapters"]]


def test_a_code_that_may_be_a_pod(tmp_path: Path, server: AnswersApi) -> None:
    """A word without capitals is a pod; if there is no such pod, it is a code."""
    access = ("--kubeconfig", str(tmp_path / "config"), "-n", "lab")
    code, out, err = run("launcher", *access)
    assert (code, err) == (0, "")
    assert out.startswith("Launcher\n")
    server.answers[f"{LAB}/pods/launcher"] = pod_in_cluster(metadata={"name": "launcher"})
    code, out, _ = run("launcher", *access)
    assert (code, out.splitlines()[0]) == (0, "Pod lab/launcher")


def test_a_word_that_is_neither_pod_nor_code(tmp_path: Path, server: AnswersApi) -> None:
    """The message offers near codes for a word that could be one; other words are explained."""
    assert server.answers
    access = ("--kubeconfig", str(tmp_path / "config"), "-n", "lab")
    code, out, err = run("fabricunknwn", "train-1", "launcher", *access)
    assert code == 2
    assert out.startswith("Launcher\n")
    first, second = err.splitlines()
    assert first.endswith("'fabricunknwn' is not a code; did you mean FabricUnknown?")
    assert "train-1" in second
    assert "code" not in second


def test_words_without_a_cluster(tmp_path: Path) -> None:
    """A code is explained in any case; for other words, the missing kubeconfig is named once."""
    access = ("--kubeconfig", str(tmp_path / "missing"))
    code, out, err = run("fabricunknown", *access)
    assert (code, err) == (0, "")
    assert out.startswith("FabricUnknown\n")
    code, out, err = run("train-0", "train-1", *access)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("rdma-webhook: error: the kubeconfig ")
    _, _, err = run("nonsense", *access)
    assert err.startswith(
        "rdma-webhook: error: nonsense is not a code, and cannot be looked up as a pod: the kube"
    )
    assert err.endswith(
        "does not exist (set --kubeconfig); `rdma-webhook why --codes` lists all codes\n"
    )
    _, _, err = run("fabricunknwn", *access)
    assert err.endswith("; 'fabricunknwn' is not a code; did you mean FabricUnknown?\n")


def test_the_list_of_codes(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a line for each code and tool, as wide as a terminal; or JSON, as for one code."""
    code, out, err = run("--codes")
    assert (code, err) == (0, "")
    lines = [line.split(maxsplit=2) for line in out.splitlines()]
    assert {name for name, *_ in lines} == set(CODE_NAMES)
    assert ["FabricWithoutNodes", "fabrics", "No node belongs to the fabric."] in lines
    assert max(map(len, out.splitlines())) > WIDTH
    monkeypatch.setattr("webhook.cli.why.terminal", lambda: True)
    assert max(map(len, run("--codes")[1].splitlines())) == WIDTH
    code, answer = form("--codes")
    assert code == 0
    assert [explanation["code"] for explanation in answer["codes"]] == list(CODE_NAMES)


JOB_PATH = "/apis/batch/v1/namespaces/lab/jobs/train"
NO_ITEMS: dict[str, Any] = {"metadata": {"resourceVersion": "1"}, "items": []}


def job_pod(name: str, created: str) -> dict[str, Any]:
    """Return a pod that the Job `train` created."""
    owners = [{"kind": "Job", "name": "train", "uid": "j", "controller": True}]
    metadata = {"name": name, "uid": name, "creationTimestamp": created, "ownerReferences": owners}
    return pod_in_cluster(metadata=metadata)


@pytest.fixture
def job_server(server: AnswersApi) -> AnswersApi:
    """Serve the Job `train` with four pods, besides the pod `train-0` of nobody."""
    pods = [job_pod(f"train-{number}", f"2026-11-22T10:00:0{number}Z") for number in range(1, 5)]
    server.answers |= {
        JOB_PATH: {"metadata": {"name": "train", "namespace": "lab", "uid": "j"}},
        f"{LAB}/pods": {"metadata": {"resourceVersion": "1"}, "items": [pod_in_cluster(), *pods]},
    }
    server.answers |= {f"{LAB}/pods/{pod['metadata']['name']}": pod for pod in pods}
    return server


@pytest.mark.parametrize(
    "words",
    [["job/train"], ["job", "train"], ["Jobs", "train"], ["jobs.batch/train"], ["JOB/train"]],
    ids=" ".join,
)
def test_a_controller(tmp_path: Path, job_server: AnswersApi, words: list[str]) -> None:
    """Its newest pods are explained, however kubectl's users write it; a note has the number."""
    assert job_server.answers
    access = ("--kubeconfig", str(tmp_path / "config"))
    code, out, err = run(*words, *access, "-o", "json")
    assert [pod["name"] for pod in json.loads(out)["pods"]] == ["train-4", "train-3", "train-2"]
    assert (code, err) == (
        0,
        "rdma-webhook: note: Job train has 4 pods; explaining the newest 3\n",
    )


def test_pods_by_their_kind(tmp_path: Path, server: AnswersApi) -> None:
    """`pod NAME` and `pods/NAME` are as for kubectl; a pod may have the name of a kind."""
    access = ("--kubeconfig", str(tmp_path / "config"))
    for words in (["pod", "train-0"], ["po/train-0"], ["PODS/train-0"]):
        assert run(*words, *access)[0] == 0
    server.answers[f"{LAB}/pods/job"] = pod_in_cluster(metadata={"name": "job"})
    assert run("job", *access)[1].startswith("Pod lab/job\n")


def test_a_controller_without_pods(tmp_path: Path, job_server: AnswersApi) -> None:
    """Exit code 1; the Event on the Job has the reason."""
    message = (
        'Error creating: pods "train-x" is forbidden: exceeded quota: nics, requested: '
        "requests.rdma/rdma_v100=1, used: requests.rdma/rdma_v100=4, limited: "
        "requests.rdma/rdma_v100=4"
    )
    job_server.answers |= {
        f"{LAB}/pods": NO_ITEMS,
        f"{LAB}/events": {"items": [event("FailedCreate", message, "Job", "train")]},
    }
    access = ("--kubeconfig", str(tmp_path / "config"))
    code, answer = form("job/train", *access)
    (pod,) = answer["pods"]
    assert (code, pod["name"], pod["owners"], pod["well"]) == (1, "", ["Job train"], False)
    assert pod["answer"]["code"] == "QuotaExceeded"
    assert "the ResourceQuota nics is used up: requested: requests.rdma" in pod["answer"]["text"]
    out = run("job/train", *access)[1]
    assert out.startswith("Job lab/train\n  ✘ Job train has no pods; it could not create")


def test_a_controller_that_lacks_pods(tmp_path: Path, job_server: AnswersApi) -> None:
    """Exit code 1, although each pod that it has is well; it comes before them."""
    late = event("FailedCreate", "no room", "Job", "train", lastTimestamp="2026-11-22T10:00:05Z")
    late["involvedObject"]["uid"] = "j"
    job_server.answers[f"{LAB}/events"] = {"items": [late]}
    code, answer = form("job/train", "--kubeconfig", str(tmp_path / "config"))
    lacking, *pods = answer["pods"]
    assert (code, lacking["name"], lacking["well"], len(pods)) == (1, "", False, 3)
    assert lacking["answer"]["text"] == "Job train lacks pods; it could not create one: no room"
    assert all(pod["rdma"] == "yes" for pod in pods)


def test_controllers_that_cannot_be_read(tmp_path: Path, job_server: AnswersApi) -> None:
    """Exit code 2, with the missing right or the missing object."""
    access = ("--kubeconfig", str(tmp_path / "config"))
    job_server.answers[f"{LAB}/pods"] = 403
    code, out, err = run("job/train", "job/other", *access)
    assert (code, out) == (2, "")
    assert "you do not have the right to list the pods of lab; pass the name of a pod" in err
    assert "you do not have the right to read Job other in namespace lab" in err


def test_a_pending_pod_in_a_file(tmp_path: Path) -> None:
    """Nodes in the same file count: the taint is named, and the exit code is 1."""
    message = "0/1 nodes are available: 1 node(s) had untolerated taint(s)."
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    pod = pod_in_cluster(phase="Pending", conditions=[condition], spec={"nodeName": ""})
    taint = {"key": "team", "value": "a", "effect": "NoSchedule"}
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {}},
        "spec": {"taints": [taint]},
        "status": {
            "allocatable": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    code, answer = form("-f", written(tmp_path, pod, node))
    (chapter,) = (
        chapter for chapter in answer["pods"][0]["chapters"] if chapter["name"] == "podStatus"
    )
    (finding,) = chapter["findings"]
    assert (code, finding["code"]) == (1, "BlockedByTaint")
    assert "the taint team=a:NoSchedule" in finding["text"]
