"""The variables that Ray sets in its workers: the runtime environments of RayJobs and RayServices.

Ray sets them in each worker process, where they override the container's, and it expands `${NAME}`
(docs of Ray 2.50, ray-core/handling-dependencies, env_vars). KubeRay submits a RayJob with its
`runtimeEnvYAML` (ray-project/kuberay v1.4.2, ray-operator/controllers/ray/common/job.go). In a
RayService, each application and each deployment of `serveConfigV2` may have an environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from webhook.decide.settings.setting import CommandSettings, Setting, setting_by_assignment
from webhook.decide.settings.terms import OFF_VALUE_BY_VARIABLE
from webhook.errors import DocumentError
from webhook.kube.records import text_of
from webhook.model.pod import Path, at, fields_or_empty
from webhook.preview.workloads.objects import scalar_text
from webhook.preview.workloads.templates import EnclosingObject, Template
from webhook.text.yaml.documents import read_documents

_GROUP = "ray.io/"
_JOB, _SERVICE = ("spec", "runtimeEnvYAML"), ("spec", "serveConfigV2")
_VARIABLES = "env_vars"
#: The most possible settings of a variable: with more than two, it may have any value.
_MOST = 3


def runtime_environments(templates: Sequence[Template]) -> dict[Path, CommandSettings]:
    """Return the settings for the pods of Ray's objects: the path of an object → its settings.

    A text that cannot be read sets nothing: KubeRay or Ray refuses it.
    """
    objects = {
        template.enclosing.path: template.enclosing for template in templates if template.enclosing
    }
    return {
        path: _settings(enclosing)
        for path, enclosing in objects.items()
        if enclosing.api_version.startswith(_GROUP)
    }


def _settings(enclosing: EnclosingObject) -> CommandSettings:
    job, service = _parsed(enclosing, _JOB), _parsed(enclosing, _SERVICE)
    shared = _of_only_application(service)
    certain = [*_variables(job.get(_VARIABLES), _JOB), *_variables(shared, _SERVICE)]
    others = (variables for variables in _all_variables(service) if variables is not shared)
    possible = [setting for variables in others for setting in _variables(variables, _SERVICE)]
    return CommandSettings(
        certain={setting.name: setting for setting in certain},
        possible=tuple(_some_of_each(possible)),
    )


def _of_only_application(service: dict[str, object]) -> object:
    """Return the variables of a RayService's only application; None for several applications.

    Its deployments get them, except for variables that a deployment sets itself.
    """
    applications = service.get("applications")
    if not isinstance(applications, list) or len(applications) != 1:
        return None
    return at(applications[0], ("runtime_env", _VARIABLES))


def _some_of_each(settings: list[Setting]) -> Iterator[Setting]:
    """Yield the settings without repetitions, at most _MOST of each name."""
    counts: dict[str, int] = {}
    for setting in dict.fromkeys(settings):
        count = counts[setting.name] = counts.get(setting.name, 0) + 1
        if count <= _MOST:
            yield setting


def _parsed(enclosing: EnclosingObject, path: Path) -> dict[str, object]:
    """Return the mapping in the YAML text at a path; an empty mapping without a text."""
    try:
        documents = read_documents(text_of(at(enclosing.value, path)))
    except DocumentError:
        return {}
    return fields_or_empty(documents[0].value) if documents else {}


def _all_variables(value: object) -> Iterator[object]:
    """Yield the values of all fields `env_vars`."""
    pending = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, dict):
            if _VARIABLES in node:
                yield node[_VARIABLES]
            pending.extend(node.values())
        elif isinstance(node, list):
            pending.extend(node)


def _variables(variables: object, path: Path) -> Iterator[Setting]:
    """Yield the settings of variables that can keep a library off RDMA."""
    for name, value in fields_or_empty(variables).items():
        if name in OFF_VALUE_BY_VARIABLE:
            setting = setting_by_assignment(name, scalar_text(value), ".".join(map(str, path)))
            if setting is not None:
                yield setting
