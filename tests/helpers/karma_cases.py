"""Cases of an operator in the form that onnxruntime-web's tests have."""

#: One case of Add, whose result is inserted.
ADD = """[{"name": "Add", "operator": "Add", "cases": [{"name": "two",
  "inputs": [{"data": [1, 2], "dims": [2], "type": "float32"}, {"data": [3, 4], "dims": [2], "type": "float32"}],
  "outputs": [{"data": %s, "dims": [2], "type": "float32"}]}]}]"""
