package test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// allowed lists, for each of our packages, which of our packages it may import.
var allowed = map[string][]string{
	"carma/internal/units":                 {},
	"carma/mapper":                         {"carma/mapper/attempt", "carma/mapper/breaker", "carma/mapper/explain", "carma/mapper/fairshare", "carma/mapper/learn", "carma/mapper/ledger", "carma/mapper/lifecycle", "carma/mapper/model", "carma/mapper/observe", "carma/mapper/place", "carma/mapper/policy", "carma/mapper/predict", "carma/mapper/preempt", "carma/mapper/queue", "carma/mapper/recovery", "carma/mapper/reserve"},
	"carma/mapper/interference":            {},
	"carma/mapper/breaker":                 {"carma/mapper/ledger", "carma/mapper/model"},
	"carma/mapper/reserve":                 {"carma/mapper/ledger", "carma/mapper/model", "carma/mapper/predict", "carma/mapper/queue"},
	"carma/mapper/place":                   {"carma/mapper/interference", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/policy", "carma/mapper/predict", "carma/mapper/queue", "carma/mapper/reserve"},
	"carma/mapper/preempt":                 {"carma/mapper/ledger", "carma/mapper/model", "carma/mapper/place", "carma/mapper/predict", "carma/mapper/queue", "carma/mapper/reserve"},
	"carma/mapper/learn":                   {"carma/mapper/ledger", "carma/mapper/model", "carma/mapper/place", "carma/mapper/predict", "carma/mapper/preempt", "carma/mapper/queue"},
	"carma/mapper/explain":                 {"carma/mapper/breaker", "carma/mapper/fairshare", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/place", "carma/mapper/queue", "carma/mapper/reserve"},
	"carma/mapper/observe":                 {"carma/mapper/fairshare", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/place", "carma/mapper/predict", "carma/mapper/preempt"},
	"carma/mapper/lifecycle":               {"carma/mapper/breaker", "carma/mapper/explain", "carma/mapper/fairshare", "carma/mapper/learn", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/place", "carma/mapper/preempt", "carma/mapper/queue", "carma/mapper/reserve"},
	"carma/mapper/attempt":                 {"carma/mapper/breaker", "carma/mapper/fairshare", "carma/mapper/ledger", "carma/mapper/lifecycle", "carma/mapper/model", "carma/mapper/place", "carma/mapper/predict", "carma/mapper/preempt", "carma/mapper/queue", "carma/mapper/reserve"},
	"carma/mapper/recovery":                {"carma/mapper/attempt", "carma/mapper/breaker", "carma/mapper/fairshare", "carma/mapper/learn", "carma/mapper/ledger", "carma/mapper/lifecycle", "carma/mapper/model", "carma/mapper/observe", "carma/mapper/predict", "carma/mapper/queue"},
	"carma/mapper/queue":                   {"carma/mapper/fairshare", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/predict"},
	"carma/mapper/fairshare":               {"carma/mapper/ledger", "carma/mapper/model"},
	"carma/mapper/predict":                 {"carma/mapper/interference", "carma/mapper/ledger", "carma/mapper/model"},
	"carma/mapper/ledger":                  {"carma/mapper/model"},
	"carma/mapper/policy":                  {"carma/mapper/interference", "carma/mapper/ledger", "carma/mapper/model"},
	"carma/mapper/model":                   {"carma/mapper/interference"},
	"carma/mapper/words":                   {"carma/mapper/explain", "carma/mapper/model", "carma/mapper/queue", "carma/internal/units"},
	"carma/mapper/rules":                   {"carma/mapper", "carma/mapper/model", "carma/mapper/policy"},
	"carma/mapper/energy":                  {},
	"carma/mapper/sim":                     {"carma/mapper", "carma/mapper/energy", "carma/mapper/interference", "carma/mapper/model", "carma/mapper/words"},
	"carma/mapper/sim/study":               {"carma/configs/servers", "carma/configs/traces", "carma/configs/workloads", "carma/estimator", "carma/estimator/booking", "carma/estimator/environment", "carma/estimator/evaluate", "carma/estimator/methods", "carma/estimator/networks/zoo", "carma/estimator/rivals", "carma/mapper", "carma/mapper/model", "carma/mapper/policy", "carma/mapper/rules", "carma/mapper/sim", "carma/mapper/sim/pairs"},
	"carma/mapper/sim/pairs":               {"carma/mapper/sim"},
	"carma/containers":                     {"carma/containers/endtext", "carma/containers/option"},
	"carma/containers/option":              {},
	"carma/containers/endtext":             {},
	"carma/containers/bare":                {},
	"carma/containers/cdi":                 {},
	"carma/containers/lines":               {},
	"carma/containers/docker":              {"carma/containers", "carma/containers/option", "carma/containers/cdi", "carma/containers/lines"},
	"carma/containers/containerd":          {"carma/containers", "carma/containers/option", "carma/containers/cdi", "carma/internal/failpoint"},
	"carma/containers/engines":             {"carma/containers", "carma/containers/containerd", "carma/containers/docker"},
	"carma/containers/containerstest":      {"carma/containers", "carma/containers/option"},
	"carma/estimator":                      {"carma/configs/models", "carma/mapper/interference", "carma/mapper/model", "carma/mapper/predict"},
	"carma/estimator/probe":                {"carma/configs/models", "carma/containers"},
	"carma/configs/models":                 {},
	"carma/estimator/arguments":            {"carma/configs/models", "carma/estimator/shell"},
	"carma/estimator/command":              {"carma/estimator/arguments", "carma/estimator/servers", "carma/estimator/shell"},
	"carma/estimator/shell":                {},
	"carma/estimator/networks":             {"carma/configs/models"},
	"carma/estimator/networks/safetensors": {"carma/configs/models"},
	"carma/estimator/networks/graph":       {"carma/configs/models"},
	"carma/estimator/networks/vision":      {"carma/configs/models", "carma/estimator/networks/graph"},
	"carma/estimator/networks/transformer": {"carma/configs/models", "carma/estimator/networks/graph"},
	"carma/estimator/networks/detection":   {"carma/configs/models", "carma/estimator/networks/graph", "carma/estimator/networks/transformer", "carma/estimator/networks/vision"},
	"carma/estimator/networks/diffusion":   {"carma/configs/models", "carma/estimator/networks/graph"},
	"carma/estimator/networks/zoo":         {"carma/configs/models", "carma/estimator/networks/detection", "carma/estimator/networks/diffusion", "carma/estimator/networks/graph", "carma/estimator/networks/timm", "carma/estimator/networks/transformer", "carma/estimator/networks/vision"},
	"carma/estimator/networks/timm":        {"carma/configs/models"},
	"carma/estimator/networks/hf":          {"carma/configs/models", "carma/estimator/networks/detection", "carma/estimator/networks/diffusion", "carma/estimator/networks/graph", "carma/estimator/networks/transformer", "carma/estimator/networks/vision", "carma/estimator/networks/zoo"},
	"carma/estimator/networks/named":       {"carma/configs/models", "carma/estimator/networks/hf", "carma/estimator/networks/zoo"},
	"carma/estimator/networks/described":   {"carma/configs/models", "carma/estimator/networks/hf"},
	"carma/estimator/allocator":            {},
	"carma/estimator/step":                 {"carma/configs/models", "carma/estimator/allocator"},
	"carma/estimator/environment":          {"carma/estimator/step"},
	"carma/estimator/figures":              {"carma/configs/models", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/methods":              {"carma/configs/models", "carma/estimator/figures", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/rivals/gpumemnet":     {"carma/configs/models", "carma/estimator/onnx"},
	"carma/estimator/rivals":               {"carma/configs/models", "carma/estimator/methods", "carma/estimator/onnx", "carma/estimator/step"},
	"carma/estimator/evaluate":             {"carma/configs/models", "carma/estimator", "carma/estimator/correct", "carma/estimator/environment", "carma/estimator/methods"},
	"carma/estimator/booking":              {"carma/configs/models", "carma/configs/workloads", "carma/estimator", "carma/estimator/correct", "carma/estimator/environment", "carma/estimator/figures", "carma/estimator/methods", "carma/estimator/networks/described", "carma/estimator/networks/named", "carma/estimator/onnx", "carma/mapper/interference", "carma/mapper/model"},
	"carma/estimator/correct":              {},
	"carma/estimator/servers":              {"carma/estimator/shell"},
	"carma/estimator/tabletest":            {},
	"carma/estimator/onnx":                 {},
	"carma/configs":                        {},
	"carma/configs/workloads":              {},
	"carma/configs/servers":                {},
	"carma/configs/package/sbom":           {},
	"carma/configs/suites":                 {},
	"carma/configs/dockerflags":            {},
	"carma/configs/traces":                 {"carma/configs/workloads"},
	"carma/configs/traces/joblog":          {},
	"carma/configs/traces/philly":          {"carma/configs/traces/joblog"},
	"carma/configs/traces/helios":          {"carma/configs/traces/joblog"},
	"carma/configs/traces/sia":             {"carma/configs/traces/joblog"},
	"carma/configs/traces/arrivals":        {"carma/configs/traces/joblog"},
	"carma/configs/traces/mixes":           {"carma/configs/workloads"},
	"carma/configs/traces/original":        {"carma/configs/traces", "carma/configs/traces/joblog", "carma/configs/workloads"},
	"carma/configs/traces/load":            {"carma/configs/traces", "carma/configs/traces/arrivals", "carma/configs/traces/helios", "carma/configs/traces/joblog", "carma/configs/traces/original", "carma/configs/traces/philly", "carma/configs/traces/sia"},
	"carma/configs/traces/synth":           {},
	"carma/runner":                         {"carma/containers", "carma/estimator/probe", "carma/mapper", "carma/mapper/words", "carma/runner/api", "carma/runner/audit", "carma/runner/gpu", "carma/runner/helpers", "carma/runner/journal", "carma/runner/metrics", "carma/runner/notify", "carma/runner/pull", "carma/runner/rights", "carma/runner/suspend", "carma/runner/tasklog", "carma/internal/failpoint", "carma/mapper/model", "carma/runner/clock", "carma/runner/energy", "carma/runner/monitor", "carma/runner/console", "carma/runner/httplimit", "carma/runner/record", "carma/runner/request", "carma/runner/engine", "carma/runner/deviceaccess", "carma/runner/throughput", "carma/runner/access", "carma/internal/units", "carma/runner/loop", "carma/runner/messages", "carma/runner/machine", "carma/runner/inventory", "carma/runner/doctor", "carma/runner/trial", "carma/runner/suspend/support", "carma/runner/problems", "carma/runner/retention", "carma/runner/usage", "carma/runner/label", "carma/runner/reconcile", "carma/runner/server", "carma/runner/imagelookup", "carma/runner/storedoutput", "carma/runner/ports", "carma/runner/processes", "carma/runner/sharing", "carma/runner/limiter", "carma/runner/endpoint", "carma/runner/waitreason", "carma/runner/control", "carma/runner/history", "carma/runner/containerfiles", "carma/runner/hostenv", "carma/runner/usermounts", "carma/runner/canary", "carma/runner/jobs", "carma/runner/sse", "carma/runner/terminals", "carma/runner/query", "carma/runner/dashboard", "carma/runner/attempt", "carma/runner/health", "carma/runner/measure", "carma/runner/admission", "carma/runner/streams", "carma/runner/suites", "carma/runner/probing"},
	"carma/runner/doctor":                  {"carma/containers", "carma/containers/cdi", "carma/mapper", "carma/mapper/model", "carma/runner/api", "carma/runner/clock", "carma/runner/engine", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/gpu/driverfiles", "carma/runner/journal", "carma/runner/limits", "carma/runner/monitor", "carma/runner/mounts", "carma/runner/mps", "carma/runner/problems", "carma/runner/record", "carma/runner/request", "carma/runner/suspend", "carma/runner/suspend/support", "carma/runner/trial", "carma/internal/units"},
	"carma/runner/trial":                   {"carma/containers"},
	"carma/runner/suspend/support":         {"carma/mapper/model", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/suspend"},
	"carma/runner/server":                  {"carma/runner/api", "carma/runner/certs", "carma/runner/httplimit", "carma/runner/request", "carma/runner/web"},
	"carma/runner/endpoint":                {"carma/containers", "carma/runner/access", "carma/runner/api", "carma/runner/pull", "carma/runner/record", "carma/runner/request", "carma/runner/rights"},
	"carma/runner/access":                  {"carma/containers", "carma/mapper/model", "carma/runner/api", "carma/runner/audit", "carma/runner/engine", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/internal/lazyregexp", "carma/internal/suggest"},
	"carma/runner/verify":                  {"carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/mapper/words", "carma/runner/helpers", "carma/runner/journal", "carma/runner/jsonform", "carma/runner/record"},
	"carma/runner/throughput":              {"carma/containers", "carma/mapper", "carma/mapper/model", "carma/mapper/predict", "carma/runner/clock", "carma/runner/gpu", "carma/runner/progress", "carma/runner/tasklog"},
	"carma/runner/loop":                    {"carma/internal/failpoint", "carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/runner/clock", "carma/runner/journal", "carma/runner/record", "carma/runner/request", "carma/runner/verify"},
	"carma/runner/messages":                {"carma/mapper", "carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/deviceaccess", "carma/runner/journal", "carma/runner/notify", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/runner/tasklog", "carma/runner/verify"},
	"carma/runner/retention":               {"carma/internal/failpoint", "carma/mapper", "carma/mapper/model", "carma/runner/clock", "carma/runner/journal", "carma/runner/record", "carma/runner/tasklog"},
	"carma/runner/usage":                   {"carma/mapper/model", "carma/runner/api", "carma/runner/journal", "carma/runner/record", "carma/runner/request", "carma/runner/rights"},
	"carma/runner/problems":                {"carma/mapper/breaker", "carma/runner/api", "carma/runner/engine"},
	"carma/runner/label":                   {"carma/containers", "carma/internal/units", "carma/mapper/model", "carma/runner/record"},
	"carma/runner/reconcile":               {"carma/containers", "carma/estimator/probe", "carma/internal/failpoint", "carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/runner/api", "carma/runner/clock", "carma/runner/engine", "carma/runner/journal", "carma/runner/label", "carma/runner/loop", "carma/runner/record"},
	"carma/runner/storedoutput":            {"carma/containers", "carma/runner/api", "carma/runner/clock", "carma/runner/helpers", "carma/runner/journal", "carma/runner/request", "carma/runner/retention", "carma/runner/rights", "carma/runner/tasklog"},
	"carma/runner/imagelookup":             {"carma/containers", "carma/runner/engine", "carma/runner/pull", "carma/runner/request"},
	"carma/runner/waitreason":              {"carma/mapper", "carma/mapper/model", "carma/mapper/words", "carma/runner/api", "carma/runner/clock", "carma/runner/record"},
	"carma/runner/control":                 {"carma/internal/failpoint", "carma/internal/units", "carma/mapper", "carma/mapper/fairshare", "carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/inventory", "carma/runner/loop", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/runner/tasklog"},
	"carma/runner/loop/looptest":           {"carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/runner/clock", "carma/runner/journal", "carma/runner/loop", "carma/runner/record"},
	"carma/runner/history":                 {"carma/internal/units", "carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/deviceaccess", "carma/runner/inventory", "carma/runner/journal", "carma/runner/record", "carma/runner/rights", "carma/runner/waitreason"},
	"carma/runner/usermounts":              {"carma/containers", "carma/runner/api", "carma/runner/engine", "carma/runner/mounts", "carma/runner/request", "carma/runner/rights"},
	"carma/runner/hostenv":                 {"carma/containers", "carma/containers/bare", "carma/estimator/probe", "carma/runner/access", "carma/runner/api", "carma/runner/engine", "carma/runner/mounts", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/runner/usermounts"},
	"carma/runner/containerfiles":          {"carma/containers", "carma/containers/option", "carma/internal/units", "carma/mapper", "carma/runner/api", "carma/runner/engine", "carma/runner/helpers", "carma/runner/hostenv", "carma/runner/label", "carma/runner/mounts", "carma/runner/record", "carma/runner/request", "carma/runner/usermounts"},
	"carma/runner/canary":                  {"carma/containers", "carma/containers/bare", "carma/internal/units", "carma/mapper/model", "carma/runner/engine", "carma/runner/label", "carma/runner/loop", "carma/runner/record", "carma/runner/trial"},
	"carma/runner/sse":                     {"carma/runner/httplimit"},
	"carma/runner/terminals":               {"carma/containers", "carma/internal/lazyregexp", "carma/mapper/model", "carma/runner/access", "carma/runner/api", "carma/runner/console", "carma/runner/engine", "carma/runner/record", "carma/runner/request", "carma/runner/rights"},
	"carma/runner/jobs":                    {"carma/containers", "carma/internal/suggest", "carma/internal/units", "carma/mapper/model", "carma/mapper/words", "carma/runner/api", "carma/runner/control", "carma/runner/loop", "carma/runner/record", "carma/runner/request"},
	"carma/runner/query":                   {"carma/internal/units", "carma/mapper", "carma/mapper/explain", "carma/mapper/model", "carma/mapper/predict", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/control", "carma/runner/deviceaccess", "carma/runner/energy", "carma/runner/engine", "carma/runner/gpu", "carma/runner/helpers", "carma/runner/inventory", "carma/runner/journal", "carma/runner/label", "carma/runner/loop", "carma/runner/machine", "carma/runner/monitor", "carma/runner/ports", "carma/runner/problems", "carma/runner/progress", "carma/runner/record", "carma/runner/request", "carma/runner/retention", "carma/runner/rights", "carma/runner/storedoutput", "carma/runner/throughput", "carma/runner/waitreason"},
	"carma/runner/taskkind":                {"carma/estimator/command", "carma/internal/lazyregexp", "carma/runner/api", "carma/runner/record"},
	"carma/runner/textcheck":               {"carma/internal/lazyregexp", "carma/runner/api", "carma/runner/request"},
	"carma/runner/gpushare":                {"carma/containers", "carma/estimator", "carma/estimator/command", "carma/estimator/servers", "carma/internal/units", "carma/mapper/model", "carma/runner/record", "carma/runner/request"},
	"carma/runner/dashboard":               {"carma/mapper/model", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/energy", "carma/runner/query", "carma/runner/record", "carma/runner/request", "carma/runner/rights"},
	"carma/runner/attempt":                 {"carma/containers", "carma/containers/bare", "carma/containers/endtext", "carma/containers/option", "carma/internal/failpoint", "carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/mapper/words", "carma/runner/api", "carma/runner/clock", "carma/runner/console", "carma/runner/containerfiles", "carma/runner/control", "carma/runner/deviceaccess", "carma/runner/energy", "carma/runner/engine", "carma/runner/gpu", "carma/runner/gpu/devices", "carma/runner/gpushare", "carma/runner/helpers", "carma/runner/hostenv", "carma/runner/imagelookup", "carma/runner/inventory", "carma/runner/label", "carma/runner/limiter", "carma/runner/loop", "carma/runner/machine", "carma/runner/monitor", "carma/runner/mps", "carma/runner/ports", "carma/runner/processes", "carma/runner/pull", "carma/runner/record", "carma/runner/rights", "carma/runner/sharing", "carma/runner/storedoutput", "carma/runner/suspend", "carma/runner/suspend/leave", "carma/runner/suspend/support", "carma/runner/tasklog", "carma/runner/throughput", "carma/runner/usermounts"},
	"carma/runner/measure":                 {"carma/internal/units", "carma/mapper", "carma/mapper/fairshare", "carma/mapper/model", "carma/runner/clock", "carma/runner/energy", "carma/runner/engine", "carma/runner/gpu", "carma/runner/health", "carma/runner/inventory", "carma/runner/journal", "carma/runner/loop", "carma/runner/metrics", "carma/runner/monitor", "carma/runner/problems", "carma/runner/query", "carma/runner/record", "carma/runner/rights", "carma/runner/waitreason"},
	"carma/runner/health":                  {"carma/runner/api", "carma/runner/endpoint", "carma/runner/monitor", "carma/runner/problems"},
	"carma/runner/admission":               {"carma/configs/models", "carma/containers", "carma/containers/option", "carma/estimator", "carma/estimator/command", "carma/internal/units", "carma/mapper", "carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/control", "carma/runner/engine", "carma/runner/gpu", "carma/runner/gpushare", "carma/runner/helpers", "carma/runner/hostenv", "carma/runner/imagelookup", "carma/runner/inventory", "carma/runner/limiter", "carma/runner/limits", "carma/runner/loop", "carma/runner/machine", "carma/runner/messages", "carma/runner/ports", "carma/runner/pull", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/runner/suspend/leave", "carma/runner/taskkind", "carma/runner/textcheck", "carma/runner/usermounts"},
	"carma/runner/suites":                  {"carma/containers", "carma/internal/units", "carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/containerfiles", "carma/runner/engine", "carma/runner/helpers", "carma/runner/journal", "carma/runner/loop", "carma/runner/machine", "carma/runner/pull", "carma/runner/record", "carma/runner/request", "carma/runner/retention", "carma/runner/rights", "carma/runner/sse", "carma/runner/storedoutput", "carma/runner/streams", "carma/runner/tasklog", "carma/runner/textcheck", "carma/runner/usermounts"},
	"carma/runner/streams":                 {"carma/mapper/model", "carma/mapper/words", "carma/runner/access", "carma/runner/api", "carma/runner/clock", "carma/runner/gpu", "carma/runner/ports", "carma/runner/problems", "carma/runner/query", "carma/runner/record", "carma/runner/request", "carma/runner/rights", "carma/runner/sse", "carma/runner/tasklog"},
	"carma/runner/probing":                 {"carma/configs/models", "carma/containers", "carma/estimator", "carma/estimator/probe", "carma/internal/units", "carma/mapper/model", "carma/runner/admission", "carma/runner/clock", "carma/runner/containerfiles", "carma/runner/engine", "carma/runner/hostenv", "carma/runner/label", "carma/runner/loop", "carma/runner/record"},
	"carma/runner/web":                     {},
	"carma/runner/audit":                   {"carma/runner/api"},
	"carma/runner/clock":                   {},
	"carma/runner/energy":                  {"carma/mapper/energy", "carma/mapper/model", "carma/runner/api", "carma/runner/gpu", "carma/internal/units"},
	"carma/runner/rights":                  {},
	"carma/runner/web/look":                {},
	"carma/runner/meminfo":                 {},
	"carma/runner/metrics":                 {},
	"carma/runner/deviceaccess":            {"carma/mapper/model", "carma/runner/gpu", "carma/runner/gpu/devices", "carma/runner/monitor"},
	"carma/runner/machine":                 {"carma/containers", "carma/internal/units", "carma/mapper/model", "carma/runner/api", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/helpers", "carma/runner/meminfo", "carma/runner/request"},
	"carma/runner/inventory":               {"carma/containers", "carma/containers/cdi", "carma/internal/units", "carma/mapper/model", "carma/runner/api", "carma/runner/gpu", "carma/mapper/words"},
	"carma/runner/sharing":                 {"carma/containers", "carma/containers/endtext", "carma/mapper/model", "carma/runner/gpu", "carma/runner/monitor", "carma/runner/mps", "carma/runner/record"},
	"carma/runner/processes":               {"carma/mapper/model", "carma/runner/gpu", "carma/runner/gpu/cgroup"},
	"carma/runner/ports":                   {"carma/containers/option", "carma/runner/api", "carma/runner/gpu", "carma/runner/request"},
	"carma/runner/limiter":                 {"carma/containers", "carma/internal/units", "carma/mapper/model", "carma/runner/engine", "carma/runner/gpu", "carma/runner/inventory", "carma/runner/limits", "carma/runner/record"},
	"carma/runner/engine":                  {"carma/containers"},
	"carma/runner/request":                 {"carma/containers", "carma/runner/rights"},
	"carma/runner/console":                 {"carma/containers", "carma/internal/units", "carma/mapper/model", "carma/runner/api", "carma/runner/clock", "carma/runner/engine", "carma/runner/gpu", "carma/runner/tasklog"},
	"carma/runner/httplimit":               {"carma/runner/api", "carma/runner/request", "carma/runner/web"},
	"carma/runner/record":                  {"carma/containers", "carma/estimator/servers", "carma/mapper/model", "carma/runner/api", "carma/runner/energy", "carma/runner/journal", "carma/runner/monitor", "carma/runner/progress", "carma/internal/units", "carma/runner/request"},
	"carma/runner/monitor":                 {"carma/containers", "carma/mapper/model", "carma/runner/api", "carma/runner/clock", "carma/runner/gpu", "carma/runner/limits"},
	"carma/runner/pull":                    {"carma/containers"},
	"carma/runner/helpers":                 {"carma/containers", "carma/containers/option", "carma/runner/api", "carma/runner/pull"},
	"carma/runner/notify":                  {"carma/runner/api"},
	"carma/runner/mps":                     {},
	"carma/runner/progress":                {},
	"carma/runner/limits":                  {},
	"carma/runner/mounts":                  {},
	"carma/runner/api":                     {"carma/configs/models", "carma/containers", "carma/containers/option"},
	"carma/internal/failpoint":             {},
	"carma/runner/journal":                 {"carma/internal/failpoint"},
	"carma/runner/jsonform":                {},
	"carma/runner/tasklog":                 {"carma/containers/lines", "carma/internal/failpoint"},
	"carma/runner/gpu":                     {"carma/mapper/model"},
	"carma/runner/gpu/cgroup":              {},
	"carma/runner/gpu/driverfiles":         {"carma/internal/lazyregexp"},
	"carma/runner/gpu/devices":             {"carma/internal/lazyregexp", "carma/runner/gpu/cgroup"},
	"carma/runner/gpu/dcgm":                {},
	"carma/runner/suspend":                 {"carma/runner/gpu/cgroup", "carma/internal/failpoint"},
	"carma/runner/suspend/leave":           {"carma/runner/suspend"},
	"carma/runner/gpu/nvml":                {"carma/mapper/model", "carma/runner/gpu", "carma/runner/meminfo"},
	"carma/internal/suggest":               {},
	"carma/internal/lazyregexp":            {},
	"carma/runner/certs":                   {},
	"carma/cmd/carma/agent":                {"carma/cmd/carma/cli", "carma/cmd/carma/settings", "carma/configs/servers"},
	"carma/cmd/carma/cards":                {"carma/cmd/carma/cli", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/gpu/dcgm", "carma/runner/gpu/nvml"},
	"carma/containers/containerd/logfile":  {"carma/containers", "carma/containers/containerd/relay"},
	"carma/containers/containerd/relay":    {},
	"carma/runner/gpu/simgpu/client":       {"carma/mapper/model", "carma/runner/gpu/simgpu/wire"},
	"carma/runner/gpu/simgpu/wire":         {"carma/mapper/model"},
	"carma/runner/gpu/simgpu":              {"carma/configs/servers", "carma/mapper/model", "carma/mapper/sim", "carma/runner/gpu", "carma/runner/suspend"},
	"carma/cmd/carma":                      {"carma/cmd/carma/root"},
	"carma/cmd/carma/root":                 {"carma/configs", "carma/containers/containerd", "carma/runner/api", "carma/runner/gpu/devices", "carma/runner/suspend"},
	"carma/cmd/carma-init":                 {},
	"carma/cmd/carma/account":              {"carma/cmd/carma/cli", "carma/cmd/carma/pick", "carma/internal/suggest", "carma/internal/units", "carma/runner/api"},
	"carma/cmd/carma/mcp":                  {"carma/cmd/carma/cli", "carma/runner/api"},
	"carma/cmd/carma/attach":               {"carma/cmd/carma/cli", "carma/cmd/carma/pick", "carma/mapper/model", "carma/runner/api"},
	"carma/cmd/carma/change":               {"carma/cmd/carma/attach", "carma/cmd/carma/cli", "carma/cmd/carma/envs", "carma/cmd/carma/pick", "carma/cmd/carma/submit", "carma/configs/dockerflags", "carma/configs/models", "carma/cmd/carma/taskfile", "carma/internal/units", "carma/runner/api", "carma/mapper/model"},
	"carma/cmd/carma/contexts":             {"carma/internal/suggest", "carma/runner/api", "carma/cmd/carma/settings"},
	"carma/cmd/carma/cli":                  {"carma/cmd/carma/contexts", "carma/cmd/carma/dockerconfig", "carma/cmd/carma/elsewhere", "carma/containers", "carma/internal/units", "carma/runner/api", "carma/mapper/model", "carma/cmd/carma/settings", "carma/mapper/policy"},
	"carma/cmd/carma/daemon":               {"carma/cmd/carma/cards", "carma/cmd/carma/cli", "carma/cmd/carma/engine", "carma/cmd/carma/notifyfile", "carma/cmd/carma/settings", "carma/configs/servers", "carma/containers", "carma/containers/engines", "carma/estimator/booking", "carma/estimator/environment", "carma/estimator/probe", "carma/mapper/model", "carma/runner", "carma/runner/access", "carma/runner/api", "carma/runner/certs", "carma/runner/clock", "carma/runner/doctor", "carma/runner/gpu", "carma/runner/gpu/devices", "carma/runner/gpu/simgpu", "carma/runner/journal", "carma/runner/limits", "carma/runner/machine", "carma/runner/metrics", "carma/runner/mounts", "carma/runner/mps", "carma/runner/notify", "carma/runner/retention", "carma/runner/suspend", "carma/runner/suspend/leave", "carma/runner/suspend/support", "carma/runner/tasklog", "carma/runner/verify", "carma/runner/server", "carma/runner/sharing", "carma/runner/limiter", "carma/internal/units", "carma/runner/admission", "carma/runner/probing"},
	"carma/cmd/carma/doctor":               {"carma/cmd/carma/cli", "carma/cmd/carma/engine", "carma/containers", "carma/estimator/environment", "carma/estimator/onnx", "carma/runner/api", "carma/runner/gpu", "carma/runner/journal", "carma/cmd/carma/settings", "carma/runner/verify"},
	"carma/cmd/carma/engine":               {"carma/cmd/carma/cli", "carma/containers", "carma/containers/engines", "carma/cmd/carma/settings"},
	"carma/cmd/carma/dockerconfig":         {"carma/containers"},
	"carma/cmd/carma/envs":                 {"carma/cmd/carma/cli", "carma/internal/suggest", "carma/runner/api"},
	"carma/cmd/carma/estimate":             {"carma/cmd/carma/cli", "carma/cmd/carma/engine", "carma/cmd/carma/settings", "carma/configs/models", "carma/containers", "carma/estimator/allocator", "carma/estimator/booking", "carma/estimator/environment", "carma/estimator/evaluate", "carma/estimator/figures", "carma/estimator/methods", "carma/estimator/networks", "carma/estimator/networks/named", "carma/estimator/networks/safetensors", "carma/estimator/probe", "carma/estimator/rivals", "carma/runner/api"},
	"carma/cmd/carma/image":                {"carma/cmd/carma/cli", "carma/cmd/carma/engine", "carma/cmd/carma/settings", "carma/containers"},
	"carma/cmd/carma/journal":              {"carma/cmd/carma/cli", "carma/cmd/carma/settings", "carma/runner/journal", "carma/runner/verify"},
	"carma/cmd/carma/mps":                  {"carma/cmd/carma/cli", "carma/cmd/carma/settings", "carma/runner/api", "carma/runner/mps"},
	"carma/cmd/carma/notify":               {"carma/cmd/carma/cli", "carma/cmd/carma/notifyfile", "carma/runner/api"},
	"carma/cmd/carma/notifyfile":           {"carma/runner/api"},
	"carma/cmd/carma/pick":                 {"carma/cmd/carma/cli", "carma/cmd/carma/settings", "carma/internal/suggest", "carma/internal/units", "carma/runner/api", "carma/mapper/model"},
	"carma/cmd/carma/replay":               {"carma/cmd/carma/cli", "carma/cmd/carma/journal", "carma/cmd/carma/report", "carma/configs/servers", "carma/configs/traces", "carma/configs/workloads", "carma/estimator/booking", "carma/mapper/model", "carma/mapper/policy", "carma/mapper/sim", "carma/mapper/sim/pairs", "carma/mapper/sim/study", "carma/runner/api"},
	"carma/cmd/carma/report":               {"carma/mapper/model", "carma/mapper/policy", "carma/mapper/sim", "carma/runner/web/look"},
	"carma/cmd/carma/run":                  {"carma/cmd/carma/attach", "carma/cmd/carma/cli", "carma/cmd/carma/elsewhere", "carma/cmd/carma/envs", "carma/cmd/carma/notify", "carma/cmd/carma/pick", "carma/cmd/carma/submit", "carma/configs/dockerflags", "carma/cmd/carma/taskfile", "carma/estimator/booking", "carma/runner/api"},
	"carma/cmd/carma/server":               {"carma/cmd/carma/cli", "carma/cmd/carma/contexts", "carma/cmd/carma/settings", "carma/configs", "carma/runner/api"},
	"carma/cmd/carma/settings":             {"carma/configs/servers", "carma/containers/bare", "carma/mapper", "carma/mapper/model", "carma/mapper/policy", "carma/mapper/rules"},
	"carma/cmd/carma/submit":               {"carma/cmd/carma/cli", "carma/cmd/carma/dockerconfig", "carma/configs/models", "carma/cmd/carma/notifyfile", "carma/estimator/arguments", "carma/estimator/booking", "carma/estimator/command", "carma/estimator/networks", "carma/estimator/networks/described", "carma/estimator/networks/named", "carma/runner/api"},
	"carma/cmd/carma/suite":                {"carma/cmd/carma/attach", "carma/cmd/carma/cli", "carma/cmd/carma/envs", "carma/cmd/carma/submit", "carma/cmd/carma/tasks", "carma/configs/suites", "carma/cmd/carma/suite/compose", "carma/cmd/carma/taskfile", "carma/containers/engines", "carma/mapper/model", "carma/runner/api"},
	"carma/cmd/carma/suite/compose":        {"carma/configs/dockerflags", "carma/cmd/carma/taskfile", "carma/runner/api"},
	"carma/cmd/carma/tasks":                {"carma/cmd/carma/attach", "carma/cmd/carma/cli", "carma/cmd/carma/pick", "carma/internal/suggest", "carma/containers", "carma/containers/endtext", "carma/runner/api", "carma/mapper/model"},
	"carma/cmd/carma/taskfile":             {"carma/runner/api"},
	"carma/cmd/carma/top":                  {"carma/cmd/carma/cli", "carma/cmd/carma/pick", "carma/cmd/carma/server", "carma/cmd/carma/tasks", "carma/internal/units", "carma/runner/api", "carma/mapper/model"},
	"carma/cmd/carma/web":                  {"carma/cmd/carma/cli", "carma/runner/api"},
	"carma/cmd/carma/trace":                {"carma/cmd/carma/cli", "carma/cmd/carma/report", "carma/configs/traces", "carma/configs/traces/arrivals", "carma/configs/traces/joblog", "carma/configs/traces/load", "carma/configs/traces/mixes", "carma/configs/traces/original"},
	"carma/cmd/openapi":                    {"carma/runner"},
	"carma/cmd/simtask":                    {"carma/configs/workloads", "carma/mapper/model", "carma/mapper/sim", "carma/runner/gpu/simgpu/client", "carma/runner/gpu/simgpu/wire"},
	"carma/cmd/carma/elsewhere":            {},

	// The module of what needs Kubernetes' client.
	"carma/containers/kubernetes/test":                 {},
	"carma/containers/kubernetes/simgpus":              {"carma/containers", "carma/containers/kubernetes"},
	"carma/containers/kubernetes/cluster":              {"carma/containers/kubernetes", "carma/mapper/model", "carma/runner/gpu"},
	"carma/containers/kubernetes/kubeconfig":           {"carma/cmd/carma/contexts", "carma/runner/api"},
	"carma/containers/kubernetes/manifest":             {"carma/containers", "carma/containers/option"},
	"carma/containers/kubernetes/agent":                {"carma/cmd/carma/agent", "carma/cmd/carma/cards", "carma/cmd/carma/cli", "carma/internal/suggest", "carma/configs/servers", "carma/containers", "carma/containers/kubernetes", "carma/containers/kubernetes/simgpus", "carma/containers/kubernetes/cluster", "carma/runner/gpu", "carma/runner/gpu/cgroup", "carma/runner/gpu/simgpu", "carma/mapper/model", "carma/cmd/carma/settings"},
	"carma/containers/kubernetes/cmd/carma-agent":      {"carma/cmd/carma/agent", "carma/cmd/carma/cli", "carma/containers/kubernetes/agent", "carma/cmd/carma/settings"},
	"carma/containers/kubernetes/cmd/carma-kubernetes": {"carma/cmd/carma/cli", "carma/cmd/carma/contexts", "carma/cmd/carma/root", "carma/containers", "carma/containers/engines", "carma/containers/kubernetes", "carma/containers/kubernetes/agent", "carma/containers/kubernetes/cluster", "carma/containers/kubernetes/kubeconfig"},

	// The program puts its commands together. A command imports cli and the
	// product. Its imports from other commands are listed here.
}

// free are tools and tests, which may import anything.
var free = []string{
	"carma/test", "carma/test/starts",
	"carma/estimator/networks/timm/pack", "carma/configs/traces/synth/write",
	"carma/containers/containerstest/engine", "carma/containers/containerstest/tool",
	"carma/runner/gpu/devices/devicestest", "carma/runner/limits/standin", "carma/runner/mps/standin",
}

// pure packages may import only the standard library and the packages in the
// table.
var pure = []string{"carma/mapper", "carma/mapper/rules", "carma/mapper/fairshare", "carma/mapper/predict", "carma/mapper/breaker", "carma/mapper/queue", "carma/mapper/reserve", "carma/mapper/place", "carma/mapper/preempt", "carma/mapper/learn", "carma/mapper/explain", "carma/mapper/observe", "carma/mapper/lifecycle", "carma/mapper/attempt", "carma/mapper/recovery", "carma/mapper/policy", "carma/mapper/ledger", "carma/mapper/model", "carma/mapper/energy", "carma/internal/units", "carma/mapper/interference", "carma/mapper/words", "carma/mapper/sim", "carma/mapper/sim/pairs", "carma/runner/progress"}

// clusterModule is the module of what needs Kubernetes' client.
const clusterModule = "../containers/kubernetes"

func TestImports(t *testing.T) {
	var out []byte
	for _, module := range []string{"..", clusterModule} {
		list, err := exec.Command("go", "list", "-C", module, "-json=ImportPath,Imports", "./...").Output()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, list...)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		may, known := lookUp(p.ImportPath)
		if !known {
			if !slices.ContainsFunc(free, func(f string) bool { return p.ImportPath == f || strings.HasPrefix(p.ImportPath, f+"/") }) {
				t.Errorf("%s is not in the list of what may import what; add it in test/imports_test.go", p.ImportPath)
			}
			continue
		}
		seen++
		for _, i := range may {
			if !slices.Contains(p.Imports, i) {
				t.Errorf("%s does not import %s; take that out of test/imports_test.go", p.ImportPath, i)
			}
		}
		for _, i := range p.Imports {
			ours := strings.HasPrefix(i, "carma/")
			if ours && !mayImport(p.ImportPath, may, i) {
				t.Errorf("%s imports %s; if that is right, say so in test/imports_test.go", p.ImportPath, i)
			}
			if !ours && slices.Contains(pure, p.ImportPath) && strings.Contains(i, ".") {
				t.Errorf("%s imports %s; it may use the standard library only", p.ImportPath, i)
			}
			if i == "github.com/spf13/viper" && p.ImportPath != "carma/cmd/carma/settings" {
				t.Errorf("%s imports viper; only cmd/carma/settings does", p.ImportPath)
			}
		}
	}
	if seen < len(allowed)-1 {
		t.Errorf("only %d of %d listed packages were found", seen, len(allowed))
	}
}

// TestConfigsImportNoParts: configs contains data, which the mapper, the runner, the
// containers and the commands may read. So no package of configs imports one of them,
// directly or not, and neither do its tests.
func TestConfigsImportNoParts(t *testing.T) {
	out, err := exec.Command("go", "list", "-test", "-f", "{{.ImportPath}}{{range .Deps}} {{.}}{{end}}", "carma/configs/...").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		deps := strings.Fields(line)
		for _, path := range deps[1:] {
			for _, part := range []string{"carma/mapper", "carma/runner", "carma/containers", "carma/cmd"} {
				if path == part || strings.HasPrefix(path, part+"/") {
					t.Errorf("%s imports %s, directly or not; move the code that needs it out of configs", deps[0], path)
				}
			}
		}
	}
}

// offPath are the packages for comparison, evaluation, import and replay. No
// task's run needs them (docs/design.md, Packages).
var offPath = []string{
	"carma/cmd/carma/report", "carma/configs/traces", "carma/estimator/evaluate", "carma/estimator/rivals",
	"carma/mapper/sim/pairs", "carma/mapper/sim/study",
}

// readers read users' files. A command does so as its user; the daemon, which may be
// root, never does.
var readers = []string{"carma/cmd/carma/taskfile"}

// onPath are the commands that a task's run needs.
var onPath = []string{"daemon", "run", "suite", "tasks", "attach", "submit", "server", "doctor", "image", "mps", "journal"}

// TestDaemonWithoutLab: neither the daemon nor another command on a task's path
// imports the lab, directly or not. The daemon imports no reader.
func TestDaemonWithoutLab(t *testing.T) {
	program := depsOf(t, ".", "carma/cmd/carma")
	for _, name := range onPath {
		without := offPath
		if name == "daemon" {
			without = slices.Concat(offPath, readers)
		}
		all := depsOf(t, ".", "carma/cmd/carma/"+name)
		for _, of := range without {
			below := func(path string) bool { return path == of || strings.HasPrefix(path, of+"/") }
			if i := slices.IndexFunc(all, below); i >= 0 {
				t.Errorf("%s is below carma/cmd/carma/%s; it is for other commands", all[i], name)
			}
			if !slices.ContainsFunc(program, below) {
				t.Errorf("no command has %s; take it out of the list", of)
			}
		}
	}
}

// heavy lists the packages that the agent of a node must not import: the daemon, the
// estimators, drawing, Compose files, clients of engines, and the journal's database.
var heavy = []string{
	"carma/runner", "carma/estimator", "carma/runner/journal", "carma/containers/engines", "carma/containers/docker", "carma/containers/containerd",
	"github.com/moby/moby/client", "github.com/containerd/containerd/v2/client", "github.com/danielgtaylor/huma/v2", "github.com/compose-spec/compose-go/v2/types",
	"modernc.org/sqlite", "charm.land/bubbletea/v2",
}

// TestAgentIsLean: the agent's program has none of the heavy packages, because they would
// take memory on each node. carma must have each listed package, so that the test detects
// a removed name.
func TestAgentIsLean(t *testing.T) {
	agent, program := depsOf(t, clusterModule, "-tags", "grpcnotrace", "./cmd/carma-agent"), depsOf(t, ".", "carma/cmd/carma")
	for _, path := range heavy {
		if !slices.Contains(program, path) {
			t.Errorf("carma has no %s; take it out of the list", path)
		}
		if slices.Contains(agent, path) {
			t.Errorf("carma-agent has %s", path)
		}
	}
}

// TestWithoutKubernetes: carma links nothing of Kubernetes, and carma-kubernetes does.
func TestWithoutKubernetes(t *testing.T) {
	client := func(path string) bool { return strings.HasPrefix(path, "k8s.io/") }
	if all := depsOf(t, ".", "../..."); slices.ContainsFunc(all, client) {
		t.Errorf("the module carma has %s", all[slices.IndexFunc(all, client)])
	}
	if !slices.ContainsFunc(depsOf(t, clusterModule, "./cmd/carma-kubernetes"), client) {
		t.Error("carma-kubernetes has nothing of k8s.io")
	}
}

// depsOf are these packages of a module and all that they import, directly or not.
func depsOf(t *testing.T, module string, packages ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"list", "-C", module, "-deps"}, packages...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// lookUp returns which packages a package may import, and whether it is known. A
// driver of another container engine is known by its place.
func lookUp(path string) ([]string, bool) {
	may, ok := allowed[path]
	if !ok && isDriver(path) {
		return []string{"carma/containers"}, true
	}
	return may, ok
}

// isDriver reports whether a package below containers is a driver: it is none of
// the listed packages.
func isDriver(path string) bool {
	_, listed := allowed[path]
	below, is := strings.CutPrefix(path, "carma/containers/")
	return is && !listed && !strings.Contains(below, "/")
}

// common packages may be imported by all packages.
var common = []string{"carma/internal/suggest", "carma/internal/lazyregexp", "carma/internal/units"}

// mayImport also allows the package's own sub-packages, all commands where they are put
// together, and the texts of options in a driver.
func mayImport(from string, may []string, path string) bool {
	return slices.Contains(may, path) || (from != "carma/mapper" && from != "carma/runner" && strings.HasPrefix(path, from+"/")) ||
		slices.Contains(common, path) || from == "carma/containers/engines" && isDriver(path) || isDriver(from) && path == "carma/containers/option" || from == "carma/cmd/carma/root" && strings.HasPrefix(path, "carma/cmd/carma/")
}
