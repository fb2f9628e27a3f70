"""A trace of job_id, arrival_s, gpus, duration_s plays wherever GPUs or links are shared, and says what is assumed."""

import json

import pytest

from clustergym.experiments.cli import run
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.configuration.network_choice import load_network
from clustergym.simulator.engine.simulator import Simulator
from clustergym.simulator.workloads import open_workload

TRACE = "job_id,arrival_s,gpus,duration_s\nj1,0,2,600\nj2,10,4,1200\nj3,20,1,300\nj4,30,8,900\nj5,35,2,4000\n"


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "plain.csv"
    path.write_text(TRACE)
    return path


def played(capsys, env, trace, *more):
    status = run(["evaluate", env, "--workload", str(trace), "--seeds", "0", "--json", *more])
    said = capsys.readouterr()
    return status, json.loads(said.out) if said.out else [], said.err


def test_it_plays_in_sharing_and_says_what_is_assumed(trace, capsys):
    status, rows, err = played(capsys, "Sharing", trace)
    assert status == 0
    assert "plain.csv names no models, so this is assumed: jobs send nothing over the network (network=none)" in err
    assert "(interference=constant:xi=1.47), GPU memory has no limit (memory_gb=inf)" in err
    assert {row["setting"]["network"] for row in rows} == {"none"}
    assert {row["setting"]["interference"] for row in rows} == {"constant:xi=1.47"}
    names = {row["policy"] for row in rows}
    assert {"sjf-bsbf", "fifo", "tiresias"} <= names and "pollux" not in names


def test_it_plays_in_timeshift(trace, capsys):
    status, rows, err = played(capsys, "TimeShift", trace, "--policies", "themis themis+cassini")
    assert status == 0 and "network=contention:default=silent" in err
    assert all("default=silent" in row["setting"]["network"] for row in rows)


def test_what_the_user_says_stays(trace, capsys):
    status, rows, err = played(
        capsys, "Sharing", trace, "--policies", "sjf", "--set", "interference=constant:xi=1.1 memory_gb=12"
    )
    assert status == 1 and "of whose memory no profile says anything" in err
    status, rows, err = played(capsys, "Sharing", trace, "--policies", "sjf", "--set", "interference=constant:xi=1.1")
    assert status == 0 and rows[0]["setting"]["interference"] == "constant:xi=1.1"
    assert "1.47" not in err


def test_a_trace_with_models_is_left_alone(trace, capsys):
    trace.write_text("job_id,arrival_s,gpus,duration_s,model,batch_size\nj1,0,2,600,bert,8\nj2,10,4,1200,ncf,512\n")
    status, rows, err = played(capsys, "Sharing", trace, "--policies", "sjf")
    assert status == 0 and err == "" and rows[0]["setting"]["network"].startswith("allreduce")


@pytest.mark.parametrize(
    ("network", "way"), [("allreduce:gpu=2080ti", "network none"), ("contention", "network contention:default=silent")]
)
def test_elsewhere_the_sentence_names_the_way_out(trace, network, way):
    simulator = Simulator("cassini-testbed", network)
    with pytest.raises(InputError, match=f"add columns model and batch_size, or play on {way}, where such jobs send"):
        simulator.reset(open_workload(trace), 0)


def test_silent_jobs_run_as_alone_wherever_they_are(trace):
    """24 machines of one GPU: j4's eight machines share links with others, and it takes its 900 s all the same."""
    simulator = Simulator("cassini-testbed", "contention:default=silent")
    simulator.reset(open_workload(trace), 0)
    simulator.run()
    assert simulator.jobs()["jct_s"].tolist() == [600.0, 1200.0, 300.0, 900.0, 4000.0]
    assert load_network(simulator.network.describe()).describe() == simulator.network.describe()
