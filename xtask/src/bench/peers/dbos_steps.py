"""A workflow that calls one recorded step N times, with its state in SQLite."""

import sys
import time

from dbos import DBOS, DBOSConfig

config: DBOSConfig = {
    "name": "bench",
    "system_database_url": "sqlite:///dbos.sqlite",
    "run_admin_server": False,
    "log_level": "ERROR",
}
DBOS(config=config)


@DBOS.step()
def step(number: int) -> int:
    return number + 1


@DBOS.workflow()
def workflow(steps: int) -> int:
    done = 0
    for _ in range(steps):
        done = step(done)
    return done


def main(steps: int) -> None:
    DBOS.launch()
    begun = time.perf_counter()
    assert workflow(steps) == steps
    took = time.perf_counter() - begun
    print(f"seconds {took}", flush=True)
    DBOS.destroy()


main(int(sys.argv[1]))
