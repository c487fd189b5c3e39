package main

// bodies contains an example of each request body, by method and path.
var bodies = map[string]string{
	"post /v1/calibrate":            `{"image": "my-image:1"}`,
	"post /v1/gpus/close":           `{"gpus": ["0", "3"], "why": "new driver"}`,
	"post /v1/groups/{group}/stop":  `{"reason": "wrong data"}`,
	"post /v1/launching":            `{"why": "power cut at noon"}`,
	"put /v1/notify":                `{"channels": [{"name": "phone", "kind": "webhook", "url": "https://ntfy.sh/a-topic-nobody-guesses", "format": "text"}]}`,
	"post /v1/notify/test":          `{"channel": "phone"}`,
	"post /v1/prove":                `{"image": "my-image:1"}`,
	"post /v1/reservations":         `{"for": "ann", "gpus": ["0"], "until": "2026-12-24T18:00:00Z"}`,
	"put /v1/speed":                 `{"speed": 60}`,
	"post /v1/submissions":          `{"group": "sweep", "tasks": [{"image": "my-image:1", "command": ["train.py", "--lr", "0.1"]}, {"image": "my-image:1", "command": ["train.py", "--lr", "0.01"]}]}`,
	"post /v1/submissions/preview":  `{"tasks": [{"image": "my-image:1", "mem": 12884901888}]}`,
	"put /v1/suites/{suite}":        `{"keep": true, "helpers": [{"name": "db", "container": {"image": "redis:7"}}]}`,
	"post /v1/tasks":                `{"image": "my-image:1", "name": "train", "mem": 12884901888, "command": ["python", "train.py"]}`,
	"patch /v1/tasks/{task}":        `{"priority": "high", "labels": {"paper": "2"}}`,
	"post /v1/tasks/{task}/exec":    `{"command": ["nvidia-smi"]}`,
	"post /v1/tasks/{task}/hold":    `{"why": "until Monday"}`,
	"post /v1/tasks/{task}/move":    `{"last": true}`,
	"post /v1/tasks/{task}/pin":     `{"gpus": ["1"]}`,
	"post /v1/tasks/{task}/release": `{}`,
	"post /v1/tasks/{task}/requeue": `{"hold": true, "why": "wrong data"}`,
	"post /v1/tasks/{task}/resume":  `{}`,
	"post /v1/tasks/{task}/stop":    `{"reason": "wrong data"}`,
	"post /v1/tasks/{task}/suspend": `{"why": "room for the demo"}`,
}
