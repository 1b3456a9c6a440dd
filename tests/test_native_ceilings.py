"""The binding of STREAM kernels and peak chains: tables, Steps, refusals, planted faults."""

import gc

import numpy as np
import pytest

from nnbt import _native

CHAINS = _native.peak_chains()
STREAMS = [
    (kernel.name, nontemporal, loops.isa)
    for loops in _native.stream_sets()
    if loops.available
    for kernel in _native.stream_kernels()
    for nontemporal in ([False, True] if kernel.nontemporal else [False])
]


def available(chain: _native.PeakChain) -> bool:
    return chain.available


def names(chains: list[_native.PeakChain]) -> list[str]:
    return [chain.name for chain in chains]


@pytest.mark.parametrize(("kernel", "nontemporal", "isa"), STREAMS)
def test_stream_step_runs_verifies_and_counts(kernel, nontemporal, isa):
    row = next(row for row in _native.stream_kernels() if row.name == kernel)
    step = _native.make_stream(kernel, 1 << 18, 2, nontemporal, passes=3, isa=isa)
    samples = _native.measure(step, warmup=1, runs=2)
    assert len(samples.samples_ns) == 2
    assert step.verify() is None
    elements = (1 << 18) // 8 * 3
    assert step.work_bytes == row.counted_bytes * elements
    assert step.traffic_bytes == elements * (
        row.counted_bytes if nontemporal else row.write_allocate_bytes
    )
    assert step.work_ops == row.operations * elements
    assert step.working_set_bytes == (row.reads + row.writes) << 18
    assert (step.threads, step.passes, step.isa) == (2, 3, isa)
    assert step.kernel.name == kernel


@pytest.mark.parametrize(("kernel", "nontemporal", "isa"), STREAMS)
def test_one_corrupted_element_fails_verification(kernel, nontemporal, isa):
    step = _native.make_stream(kernel, 1 << 16, 2, nontemporal, passes=1, isa=isa)
    step.run()
    step.destination[4711] += 1
    fault = step.verify()
    assert fault is not None
    assert "element 4711 is wrong" in fault


def test_destination_holds_the_result_and_keeps_its_step_alive():
    step = _native.make_stream("write", 4096, 1, passes=1)
    step.run()
    destination = step.destination
    del step
    gc.collect()
    np.testing.assert_array_equal(destination, np.full(512, 2.0))


def test_byte_conventions_explain_why_copy_reads_low():
    rows = {
        row.name: (row.counted_bytes, row.write_allocate_bytes, row.bcopy_bytes)
        for row in _native.stream_kernels()
    }
    assert rows == {
        "read": (8, 8, None), "write": (8, 16, None), "copy": (16, 24, 8), "scale": (16, 24, None),
        "add": (24, 32, None), "triad": (24, 32, None),
    }  # fmt: skip


@pytest.mark.parametrize("chain", names(list(filter(available, CHAINS))))
def test_peak_step_runs_verifies_and_counts(chain):
    step = _native.make_peak(chain, 2, 1000)
    assert step.verify() is not None, "nothing has run yet"
    samples = _native.measure(step, warmup=1, runs=3)
    assert len(samples.samples_ns) == 3
    assert step.verify() is None
    assert step.work_ops == step.chain.operations * 1000 * 2
    assert (step.threads, step.iterations, step.chain.name) == (2, 1000, chain)


def test_chains_that_this_machine_lacks_are_refused_with_their_reason():
    for chain in CHAINS:
        assert (chain.reason is None) == chain.available
        if chain.reason is not None:
            with pytest.raises(_native.Unsupported, match="^" + chain.reason[:20]):
                _native.make_peak(chain.name)


def test_operations_per_cycle_follow_from_the_columns():
    for chain in CHAINS:
        if chain.instructions_per_cycle is None:
            assert chain.operations_per_cycle is None
        else:
            per_instruction = chain.operations / chain.instructions
            assert chain.operations_per_cycle == per_instruction * chain.instructions_per_cycle


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("quadrad", 4096), "use one of read, write, copy"),
        (("read", 4096, 1, True), "run it without"),
        (("copy", 64, 2), "use at least 128 bytes"),
        (("copy", 1 << 60), "smaller arrays"),
    ],
)
def test_stream_refusals_say_what_to_do(arguments, sentence):
    with pytest.raises(_native.Unsupported, match=sentence):
        _native.make_stream(*arguments)


def test_an_unknown_chain_is_refused_with_the_names_there_are():
    with pytest.raises(_native.Unsupported, match="use one of dependent_add"):
        _native.make_peak("abacus")


def test_negative_counts_are_mistakes():
    with pytest.raises(ValueError, match="iterations"):
        _native.make_peak("dependent_add", 1, -1)
    with pytest.raises(ValueError, match="threads"):
        _native.make_stream("copy", 4096, -1)


def test_machine_facts_agree_with_each_other():
    cpus = _native.allowed_cpus()
    assert len(set(cpus)) == len(cpus)
    assert 1 <= _native.allowed_cores() <= len(cpus)
    caches = _native.cache_bytes()
    assert list(caches) == sorted(caches)
    assert all(size >= 1024 for size in caches.values())
    step = _native.make_peak("dependent_add", 0, 1)
    assert step.threads == len(cpus)
    assert all(cpu in (*cpus, -1) for cpu in step.cpus)


def test_core_clock_is_a_clock():
    assert 0.2e9 < _native.core_clock_hz(1) < 10e9
    with pytest.raises(_native.Unsupported, match="use one of"):
        _native.core_clock_hz(1, "abacus")
