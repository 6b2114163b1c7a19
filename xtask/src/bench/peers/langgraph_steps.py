"""A graph that goes around one node N times, with a checkpoint after each step, written at once."""

import sqlite3
import sys
import time
from typing import TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


class Count(TypedDict):
    done: int


def main(steps: int) -> None:
    graph = StateGraph(Count)
    graph.add_node("step", lambda state: {"done": state["done"] + 1})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: END if state["done"] >= steps else "step")
    connection = sqlite3.connect("langgraph.db", check_same_thread=False)
    saver = SqliteSaver(connection)
    saver.setup()
    connection.execute("PRAGMA synchronous = FULL")
    app = graph.compile(checkpointer=saver)
    config = {"configurable": {"thread_id": "bench"}, "recursion_limit": steps + 10}
    begun = time.perf_counter()
    result = app.invoke({"done": 0}, config, durability="sync")
    took = time.perf_counter() - begun
    assert result["done"] == steps
    print(f"seconds {took}")


main(int(sys.argv[1]))
