"""The manifests in configs/k8s keep to Kubernetes' schema, and say what colrun and the pages count on."""

import copy
import os
import pathlib

import kubernetes_validate
import pytest
import yaml

FILES = sorted((pathlib.Path(os.environ["COL_SOURCE_ROOT"]) / "configs/k8s").glob("*.yaml"))
VERSIONS = [kubernetes_validate.utils.all_versions()[index] for index in (0, -1)]  # the oldest and the newest it has


def documents(path):
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def of_kind(path, kind):
    (found,) = [document for document in documents(path) if document["kind"] == kind]
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_schema(path, version):
    assert documents(path)
    for document in documents(path):
        kubernetes_validate.validate(document, version, strict=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_schema_refuses(version):
    job = of_kind(FILES[0], "Job")
    for change in {"complete": 2}, {"completions": "two"}, {"completionMode": ["Indexed"]}:
        wrong = copy.deepcopy(job)
        wrong["spec"].update(change)
        with pytest.raises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(wrong, version, strict=True)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_the_job_needs(path):
    service, job = of_kind(path, "Service"), of_kind(path, "Job")
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    (script,) = container["args"]
    values = {variable["name"]: variable.get("value") for variable in container["env"]}
    assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] == int(values["NODES"])
    assert spec["backoffLimit"] == 0 and pod["restartPolicy"] == "Never"
    # The endpoint is the first pod, by the name that the headless Service gives it.
    name = job["metadata"]["name"]
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {"job-name": name}
    assert pod["subdomain"] == service["metadata"]["name"]
    (port,) = [entry["containerPort"] for entry in container["ports"]]
    assert f"--rdzv-endpoint {name}-0.{pod['subdomain']}:{port}" in script
    assert '--node-rank "$JOB_COMPLETION_INDEX"' in script
    (mount,) = [entry["name"] for entry in container["volumeMounts"] if entry["mountPath"] == "/dev/shm"]
    (volume,) = [entry for entry in pod["volumes"] if entry["name"] == mount]
    assert volume["emptyDir"]["medium"] == "Memory"
