"""Options of the command line that select a browser, and the way to it."""

import click
from click.testing import CliRunner

from py_ort import BrowserOptions
from py_ort.cli.common import browser_options, browsers_options


def test_a_port_for_browsers_elsewhere() -> None:
    told: list[BrowserOptions] = []
    one = click.command()(browser_options(lambda browser: told.append(browser)))
    several = click.command()(browsers_options(lambda browsers: told.extend(browsers)))
    given = ["--host", "127.0.0.1", "--port", "4711", "--public-url", "https://tests.example"]
    for command, browsers in ((one, ["capture"]), (several, ["capture", "firefox"])):
        told.clear()
        named = [word for browser in browsers for word in ("--browser", browser)]
        assert CliRunner().invoke(command, [*given, *named]).exit_code == 0
        wanted = {"host": "127.0.0.1", "port": 4711, "public_url": "https://tests.example"}
        assert told == [BrowserOptions(browser=browser, **wanted) for browser in browsers]


def test_a_port_without_a_host_is_refused() -> None:
    command = click.command()(browser_options(lambda browser: None))
    assert "are for a host" in str(CliRunner().invoke(command, ["--port", "4711"]).exception)
    assert CliRunner().invoke(command, ["--host", "127.0.0.1", "--port", "65536"]).exit_code == 2
