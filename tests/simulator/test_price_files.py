"""Published prices and carbon intensity made into a table of prices: zones, currencies, gaps, and what is refused."""

from __future__ import annotations

import json
from datetime import datetime, timedelta

import pytest

from clustergym.experiments.cli import run
from clustergym.simulator.base.errors import InputError
from clustergym.simulator.costs.electricity import Electricity
from clustergym.simulator.costs.price_files import convert, read_carbon, read_prices
from clustergym.simulator.jobs.workload import WorkloadWarning

UTC, EUROS = "Datetime (UTC),Price (USD/MWh)", "Datetime,Price (EUR/MWh)"
CARBON = "Datetime (UTC),Zone Id,Carbon Intensity gCO₂eq/kWh (direct),Carbon Intensity gCO₂eq/kWh (LCA)"
MADRID = {"zone": "Europe/Madrid", "currency": None, "rates": {"EUR": 1.0}}
DOLLARS = {"zone": None, "currency": None, "rates": {}}


def written(tmp_path, header, *rows, name="one.csv"):
    path = tmp_path / name
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return str(path)


def hourly(first, count, *cells):
    """Rows of `count` hours from a local time on, each with the number of its hour, or `cells`."""
    start = datetime.fromisoformat(first)
    return [",".join([f"{start + timedelta(hours=h)}", *(cells or [str(h)])]) for h in range(count)]


def test_regions_meet_in_utc_and_in_dollars(tmp_path):
    """In June Madrid is two hours ahead: its row of 02:00 and that of 00:00 UTC are hour 0; EUR 10 at $1.1 are $11."""
    spain = written(tmp_path, EUROS, "2023-06-01 02:00:00,10", "2023-06-01 03:00:00,20", name="es.csv")
    times = ["2023-05-31 23:00:00+00:00", "2023-06-01 00:00:00+00:00", "2023-06-01T01:00:00Z"]
    york = written(tmp_path, UTC, *(f"{time},{n}" for n, time in enumerate(times, 5)), name="us.csv")
    carbon = written(tmp_path, CARBON, "2023-06-01 00:00,ES,120,170", "2023-06-01 01:00,ES,115,165", name="c.csv")
    zones, rates = {"east": "Europe/Madrid"}, {"EUR": 1.1}
    with pytest.warns(WorkloadWarning, match="region 'west' has no carbon intensity: it is 0"):
        text, facts = convert({"east": spain, "west": york}, {"east": carbon}, zones, {}, rates)
    assert text.splitlines()[1:] == ["east,0,11,120", "east,1,22,115", "west,0,6,0", "west,1,7,0"]
    assert (facts["hours"], facts["first"]) == (2, "2023-06-01 00:00 UTC")
    assert [one["zone"] for one in facts["columns"]] == ["Europe/Madrid", "UTC", "UTC"]
    (tmp_path / "prices.csv").write_text(text)
    assert Electricity.load(str(tmp_path / "prices.csv"), ["east", "west"]).hours == 2


def test_a_clock_that_is_set_back_shows_an_hour_twice(tmp_path):
    """On 29 October 2023 02:00 in Madrid is 00:00 and then 01:00 UTC."""
    rows = ["2023-10-29 01:00,1", "2023-10-29 02:00,2", "2023-10-29 02:00,3", "2023-10-29 03:00,4"]
    found = read_prices(written(tmp_path, EUROS, *rows), **MADRID)
    assert found.values.tolist() == [1.0, 2.0, 3.0, 4.0] and found.missing == 0
    assert found.first == (datetime(2023, 10, 28, 23) - datetime(1970, 1, 1)) / timedelta(hours=1)


def test_where_the_hour_stands_once_the_later_one_is_missing_and_counted(tmp_path):
    path = written(tmp_path, EUROS, *hourly("2023-10-29 00:00", 24))
    with pytest.warns(WorkloadWarning, match=r"1 of 25 hours have no .* 2023-10-29 01:00 UTC"):
        assert read_prices(path, **MADRID).values.tolist() == [0.0, 1.0, 2.0, *range(2, 24)]


def test_a_time_that_a_clock_skips_is_left_out_and_counted(tmp_path):
    """On 26 March 2023 Madrid has no 02:00, which published tables have; 01:00 and 03:00 follow each other."""
    path = written(tmp_path, EUROS, *hourly("2023-03-26 00:00", 24))
    with pytest.warns(WorkloadWarning, match="left out: 1 of 24 rows, whose times zone Europe/Madrid skips"):
        assert read_prices(path, **MADRID).values.tolist() == [0.0, 1.0, *range(3, 24)]


def test_missing_hours_have_the_value_before_and_are_counted(tmp_path):
    """Hour 5 has no row, hour 7 no price: two of 30."""
    rows = hourly("2023-01-01 00:00", 30)
    rows[7] = "2023-01-01 07:00,nan"
    del rows[5]
    with pytest.warns(WorkloadWarning, match=r"2 of 30 hours have no .*, the first 2023-01-01 05:00 UTC"):
        found = read_prices(written(tmp_path, UTC, *rows), **DOLLARS)
    assert found.values[4:9].tolist() == [4.0, 4.0, 6.0, 6.0, 8.0] and found.missing == 2


def test_shorter_intervals_are_averaged(tmp_path):
    rows = [f"2023-01-01 0{h}:{m:02},{h + m / 30}" for h in range(2) for m in (0, 30)]
    assert read_prices(written(tmp_path, UTC, *rows), **DOLLARS).values.tolist() == [0.5, 1.5]


def test_the_direct_carbon_intensity_is_read_and_a_single_one_whatever_it_is(tmp_path):
    both = written(tmp_path, CARBON, "2023-06-01 00:00:00,ES,120,170")
    assert read_carbon(both, None).column == "Carbon Intensity gCO₂eq/kWh (direct)"
    cycle = "Datetime (UTC),Carbon intensity gCO₂eq/kWh (Life cycle)"
    assert read_carbon(written(tmp_path, cycle, "2023-06-01 00:00:00,170"), None).values.tolist() == [170.0]


def test_a_currency_that_the_header_does_not_name_is_the_one_that_is_said(tmp_path):
    path = written(tmp_path, "Datetime (UTC),Price", "2023-06-01 00:00,1000")
    found = read_prices(path, None, "JPY", {"JPY": 0.007})
    assert (found.currency, found.values.tolist()) == ("JPY", [7.0])


@pytest.mark.parametrize(
    ("header", "row", "given", "said"),
    [
        (UTC, "2023-06-01 00:00,cheap", {}, "line 2, column 'Price (USD/MWh)': 'cheap'"),
        (UTC, "yesterday,5", {}, "line 2, column 'Datetime (UTC)': 'yesterday'; expected a time YYYY-MM-DD HH:MM"),
        (UTC, "2023-06-01 00:00,5\n2023-06-01 00:00,6", {}, "line 3, column 'Datetime (UTC)'"),
        (UTC, "2023-06-01 00:00,5\n2023-06-02 00:00,6", {}, "2 of 25 hours have a value"),
        (UTC, "2023-06-01 00:00,", {}, "0 of 0 hours have a value"),
        (UTC, "2023-06-01 00:00,5", {"currency": "EUR"}, "it is said to be EUR; expected one currency"),
        (EUROS, "2023-06-01 00:00,5", {}, "is in EUR, the table in $; expected a rate, $ for 1 EUR"),
        (EUROS, "2023-06-01 00:00,5", {"rates": {"EUR": 1.0}}, "with its offset, as +01:00, or a zone to be"),
        ("Datetime (UTC),Price", "2023-06-01 00:00,5", {}, "its currency is not said"),
        ("Datetime (UTC),Price (JPY/kWh)", "2023-06-01 00:00,5", {}, "expected prices per MWh"),
        ("Datetime (UTC),cost", "2023-06-01 00:00,5", {}, "expected one with 'price' in its name"),
        (f"{UTC},Price (EUR/MWh)", "2023-06-01 00:00,5,6", {}, "expected one with 'price' in its name"),
        ("when,Price (USD/MWh)", "2023-06-01 00:00,5", {}, "column 'Datetime' is missing"),
        (EUROS, "0001-01-01 00:00,5", {**MADRID, "zone": "Asia/Tokyo"}, "'0001-01-01 00:00'; expected a time"),
    ],
)
def test_a_bad_file_is_refused_in_a_sentence(tmp_path, header, row, given, said):
    path = written(tmp_path, header, row)
    with pytest.raises(InputError) as caught:
        read_prices(path, **{**DOLLARS, **given})
    assert said in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("zones", "rates", "said"),
    [
        ({"north": "UTC"}, {}, "a zone of region 'north', which has no prices; expected east"),
        ({"east": "Mars/Olympus"}, {}, "zone 'Mars/Olympus': there is none"),
        ({}, {"EUR": 1.0}, "a rate of EUR, but no prices are in EUR"),
    ],
)
def test_what_is_said_of_no_region_or_of_no_currency_is_refused(tmp_path, zones, rates, said):
    path = written(tmp_path, UTC, "2023-06-01 00:00,5")
    with pytest.raises(InputError, match=said):
        convert({"east": path}, {}, zones, {}, rates)


def test_files_without_an_hour_in_common_are_refused(tmp_path):
    one = written(tmp_path, UTC, "2023-06-01 00:00,5", name="a.csv")
    other = written(tmp_path, UTC, "2024-06-01 00:00,5", name="b.csv")
    with pytest.raises(InputError, match="have 0 hours in common; expected from 1 to 8,784"):
        convert({"east": one, "west": other}, {}, {}, {}, {})


def test_the_command_writes_the_table_and_says_zone_and_rate(tmp_path, capsys):
    path, to = written(tmp_path, EUROS, "2023-06-01 02:00:00,10"), str(tmp_path / "prices.csv")
    words = ["prices", "convert", f"east={path}", "--zone", "east=Europe/Madrid", "--rate", "EUR=1.1", "--to", to]
    assert run(words) == 0
    assert "times of Europe/Madrid, mean 11 $/MWh at $1.1 for 1 EUR" in capsys.readouterr().out
    assert run([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["hours"] == 1
    for bad in (["--rate", "EUR=much"], ["--zone", "Europe/Madrid"], ["--to", "prices.parquet"]):
        assert run(["prices", "convert", f"east={path}", "--to", to, *bad]) == 2
