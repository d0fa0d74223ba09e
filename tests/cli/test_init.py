import pytest

import thalweg as tw


def test_init_writes_files_that_load_as_the_small_example(example):
    assert tw.load_application(example / "app.yaml") == tw.scenarios.small_taxi()
    city, loaded = tw.scenarios.small_city(), tw.load_network(example / "network.yaml")
    assert loaded.site_names == city.site_names
    assert loaded.node_cpu_ips.tolist() == city.node_cpu_ips.tolist()


def test_init_overwrites_nothing_unless_forced(thalweg, example):
    (example / "app.yaml").write_text("mine")
    refused = thalweg("init", "demo")
    assert refused.code == 2
    assert "--force overwrites it" in refused.err
    assert "2 problems" in refused.err
    assert (example / "app.yaml").read_text() == "mine"
    assert thalweg("init", "demo", "--force").code == 0
    assert tw.load_application(example / "app.yaml").name == "taxi"


@pytest.mark.parametrize("place", ["a-file", "a-file/below"])
def test_init_refuses_a_place_that_cannot_be_a_folder(thalweg, tmp_path, place):
    (tmp_path / "a-file").write_text("")
    refused = thalweg("init", place)
    assert refused.code == 2
    assert place in refused.err
    assert "Traceback" not in refused.err
