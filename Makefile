# make run [IMAGE=file.png] [PROVIDER=wasm]   the main job: read the text of an image in headless Chromium, draw it into build/read/
# make test [ARGS=...] [JOBS=N]               all tests, in so many processes at once (default: one more than CPUs, at most 4,
#                                             and on one CPU 0: one by one); ARGS goes to pytest
# make conformance [PROVIDER=wasm] [SOURCE=]  ONNX's own node tests on one provider, or SOURCE=ort-web:DIR, or a folder;
#                  [FALLBACK=no]              on that provider alone
# make kernels                                all cases of kernels, also with the shaders that GPUs get; all of the main job
# make matrix [SAMPLE=20] [AGAINST=file.json] one of SAMPLE of ONNX's node cases and three models in Chromium, Firefox and
#                                             WebKitGTK, on wasm, webgpu and webgl: build/matrix/index.html, .json, .xml
# make fuzz [MINUTES=10] [SEEDS=0:]           mutated models and random graphs against native onnxruntime
# make bounds                                 all cases of the CPU kernels, and wrong operands, on a core in which each access
#                                             beyond a tensor ends the test
# make large                                  a model above 2 GB; needs 12 GB of memory
# make check                                  format, lint, types, English, docs/operators.md; no browser
# make format                                 Python, TypeScript and C++ as make check wants them
# make libraries                              optimum, transformers and sentence-transformers on top, in a venv of their own
# make numpy1                                 the unit tests with numpy 1.26, in a venv of their own
# make onnx121                                the same with onnx 1.21
# make browsers                               the tests of Firefox, WebKitGTK, QtWebEngine and fleets, with those installed, and
#                                             ONNX's cases there; commands ended by each signal
# make webnn                                  sessions and ONNX's cases in a Chromium that has WebNN, which is fetched
# make build                                  the page and the core, into py_ort/assets/
# make docs                                   the documentation as a site, in build/docs; fails on links that lead nowhere
# make wheel, make clean
# make npm                                    dist/py-ort-web-VERSION.tgz, the package for pages and for Node; prints its sizes
# make release                                wheel, sdist, npm package and docs site into dist, each checked as users get it
#
# Each sets up what it needs: Debian packages, .venv, npm packages, the builds. Stamps in build/stamps make the next time quick.
SHELL := /bin/bash
.DELETE_ON_ERROR:

PYTHON ?= python3
IMAGE ?= samples/sample.png
PROVIDER ?= webgpu
SOURCE ?= onnx-node
FALLBACK ?= yes
SAMPLE ?= 20
AGAINST ?=
MINUTES ?= 10
SEEDS ?= 0:
ARGS ?=
JOBS ?= $(shell n=$$(nproc 2>/dev/null || echo 1); echo $$((n == 1 ? 0 : n < 4 ? n + 1 : 4)))
# The processes of tests, and the hundred that they start, read compiled Python instead of compiling it each again.
unexport PYTHONDONTWRITEBYTECODE
# Files in the order of the tree: the longest are not the last, which are those of tests/unit.
PYTEST := -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder

BIN := .venv/bin
STAMPS := build/stamps
GENERATED := py_ort/schema/gen web/src/schema wasm_build/include/py_ort/gen
BIOME := web/node_modules/.bin/biome
files = $(shell find $(1) -type f -not -path '*/node_modules/*' -not -name '.*' 2>/dev/null)
CXX_FILES = $(filter %.cc %.h,$(filter-out wasm_build/include/py_ort/gen/%,$(call files,wasm_build)))

.PHONY: docs run test kernels fuzz bounds large libraries numpy1 onnx121 browsers webnn matrix check format conformance build \
  setup wheel npm release clean again

run: build
	@$(BIN)/python samples/read_image.py --image "$(IMAGE)" --provider "$(PROVIDER)"

test: build
	$(BIN)/python $(PYTEST) $(ARGS)

kernels: build
	PY_ORT_ALL_CASES=1 $(BIN)/python $(PYTEST) tests/ops tests/models/test_read_image.py $(ARGS)

fuzz: build
	PYTHONPATH=tests/helpers $(BIN)/python tests/fuzz/campaign.py --minutes $(MINUTES) --seeds $(SEEDS) $(ARGS)

bounds: build
	PY_ORT_BOUNDS=1 emsdk_scripts/build
	PY_ORT_CORE=$(CURDIR)/build/core-bounds/core.mjs $(BIN)/python $(PYTEST) tests/ops/test_wasm_kernels.py \
	  tests/fuzz/test_bounds.py -o timeout=3600 $(ARGS)

browsers: build $(STAMPS)/qt
	@PYTHON="$(PYTHON)" .ci/system .ci/browsers.txt
	PYTHONPATH=$(CURDIR)/build/qt PY_ORT_ALL_CASES=1 $(BIN)/python -m pytest \
	  tests/page/test_other_browsers.py tests/page/test_node_cases_elsewhere.py tests/models/test_webgl_elsewhere.py \
	  tests/page/test_javascript_in_other_browsers.py tests/page/test_fleets.py tests/page/test_grid.py \
	  tests/errors/test_exit.py -rs $(ARGS)

# npm's package is a headless Chromium that is built with WebNN (on the CPU, by TFLite): 75 MB to fetch, 200 MB unpacked.
webnn: build build/webnn/chromium
	$(BIN)/python $(PYTEST) tests/providers/test_webnn.py -rs $(ARGS)

build/webnn/chromium:
	@mkdir -p build/webnn
	npm install --silent --no-save --ignore-scripts --prefix build/webnn @sparticuz/chromium@153.0.0
	cd build/webnn && TMPDIR=$$PWD node -e "import('@sparticuz/chromium').then((it) => it.default.executablePath())" >/dev/null

# Where a browser has no WebGPU, as WebKitGTK, its cases are skipped, with the reason.
matrix: build
	@PYTHON="$(PYTHON)" .ci/system .ci/browsers.txt
	@mkdir -p build/matrix
	$(BIN)/py-ort conformance onnx-node samples/models.py --sample $(SAMPLE) --skip-missing \
	  $(addprefix --browser ,chromium firefox webkit) $(addprefix --provider ,wasm webgpu webgl) \
	  $(addprefix --against ,$(AGAINST)) --html build/matrix/index.html --json build/matrix/results.json \
	  --junit build/matrix/results.xml $(ARGS)
	@echo build/matrix/index.html

large: build
	PY_ORT_LARGE=1 $(BIN)/python -m pytest -m large

libraries: build $(STAMPS)/libraries
	build/libraries/bin/python -m pytest tests/libraries $(ARGS)

numpy1 onnx121: %: build $(STAMPS)/%
	build/$*/bin/python -m pytest tests/unit $(ARGS)

# Without the core, whose build takes far longer: the reference is made of docstrings and commands.
docs: $(STAMPS)/schema $(STAMPS)/npm $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 build/docs-venv/bin/mkdocs build -q
	@echo build/docs/index.html

conformance: build
	$(BIN)/py-ort conformance $(SOURCE) --provider $(PROVIDER) $(if $(filter no,$(FALLBACK)),--no-fallback) $(ARGS)

# Built first: the table of operators is made from what the kernels say of themselves.
check: build
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python .ci/lines.py
	$(BIN)/python .ci/floors.py
	$(BIN)/python .ci/subjects.py
	$(BIN)/python .ci/english.py
	$(BIOME) check --error-on-warnings
	@echo clang-format --dry-run
	@$(BIN)/clang-format --dry-run --Werror $(CXX_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache --no-logo
	cd web && npm run --silent check
	$(BIN)/python -m py_ort.compiler.document --check
	$(BIN)/python -m py_ort.providers.option_code --check
	node web/npm/reference.mjs --check

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIOME) check --write
	@echo clang-format
	@$(BIN)/clang-format -i $(CXX_FILES)

build: setup py_ort/assets/core.wasm py_ort/assets/worker.js
setup: $(STAMPS)/system $(STAMPS)/schema $(STAMPS)/python $(STAMPS)/npm

wheel: build
	$(BIN)/pip wheel -q --no-deps -w dist .

npm: build
	@node web/npm/build.mjs

release: build docs $(STAMPS)/release
	@build/release-venv/bin/python .ci/release.py

clean:
	rm -rf build dist py_ort/assets web/node_modules $(GENERATED)

$(STAMPS):
	@mkdir -p $@

$(STAMPS)/system: .ci/packages.txt .ci/system | $(STAMPS)
	@PYTHON="$(PYTHON)" .ci/system
	@touch $@

# The code of py_ort/schema, which is not in git; again where a folder of it was taken away.
$(STAMPS)/schema: $(wildcard py_ort/schema/*.fbs) py_ort/schema/generate.py $(wildcard py_ort/schema/scalar_*.py) $(wildcard py_ort/schema/operand*.py) $(wildcard py_ort/providers/*.py py_ort/providers/*/*.py) $(STAMPS)/system \
    $(if $(filter-out $(wildcard $(GENERATED)),$(GENERATED)),again)
	@"$(PYTHON)" py_ort/schema/generate.py
	@touch $@

$(STAMPS)/python: pyproject.toml hatch_build.py $(STAMPS)/system $(STAMPS)/schema
	@test -x $(BIN)/python || { echo "py_ort: making .venv"; "$(PYTHON)" -m venv .venv; }
	@echo "py_ort: installing Python packages"
	@$(BIN)/pip install -q --disable-pip-version-check -e '.[test,samples]'
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps silero-vad  # its models; it would bring PyTorch
	@touch $@

$(STAMPS)/libraries $(STAMPS)/numpy1 $(STAMPS)/onnx121: $(STAMPS)/%: .ci/%.txt pyproject.toml $(STAMPS)/system
	@echo "py_ort: making build/$*"
	@"$(PYTHON)" -m venv build/$*
	@build/$*/bin/pip install -q --disable-pip-version-check -r .ci/$*.txt -e '.[test]'
	@touch $@

# PySide6, whose QtWebEngine is a browser of `make browsers`, in a folder of its own: the tests are of the project's .venv.
$(STAMPS)/qt: .ci/qt.txt $(STAMPS)/python
	@echo "py_ort: installing PySide6 into build/qt"
	@rm -rf build/qt
	@$(BIN)/pip install -q --disable-pip-version-check --target build/qt -r .ci/qt.txt
	@touch $@

$(STAMPS)/docs: .ci/docs.txt pyproject.toml $(STAMPS)/system $(STAMPS)/schema
	@echo "py_ort: making build/docs-venv"
	@"$(PYTHON)" -m venv build/docs-venv
	@build/docs-venv/bin/pip install -q --disable-pip-version-check -r .ci/docs.txt -e .
	@touch $@

$(STAMPS)/release: .ci/release.txt $(STAMPS)/system
	@echo "py_ort: making build/release-venv"
	@"$(PYTHON)" -m venv build/release-venv
	@build/release-venv/bin/pip install -q --disable-pip-version-check -r .ci/release.txt
	@touch $@

$(STAMPS)/npm: web/package.json web/package-lock.json $(STAMPS)/system
	@echo "py_ort: installing npm packages"
	@cd web && npm ci --silent --no-audit --no-fund
	@touch $@

py_ort/assets/core.wasm: $(call files,wasm_build emsdk_scripts) $(STAMPS)/system $(STAMPS)/schema | $(STAMPS)/npm
	@echo "py_ort: building the core with Emscripten"
	@emsdk_scripts/build
	@touch $@

# After the core, whose glue is in the workers' script.
py_ort/assets/worker.js: $(call files,web) py_ort/assets/core.wasm $(STAMPS)/npm $(STAMPS)/schema
	@node web/build.mjs
	@touch $@
