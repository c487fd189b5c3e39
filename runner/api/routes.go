package api

import "time"

// The routes of the API.
var (
	Healthz = Route[None, string]{"healthz", get, "/healthz", "Whether the daemon lives: its process answers and its loop turns"}
	Readyz  = Route[None, string]{"readyz", get, "/readyz", "Whether tasks that are submitted now can be kept and started"}

	GetInfo          = Route[None, Info]{"info", get, "/v1/info", "The daemon itself"}
	GetMe            = Route[None, Me]{"whoami", get, "/v1/whoami", "Who the daemon takes the caller for"}
	GetDoctor        = Route[None, []Check]{"doctor", get, "/v1/doctor", "Self-checks"}
	GetQuotas        = Route[QuotaOptions, []Account]{"quotas", get, "/v1/quotas", "What users and groups have, and may have"}
	GetUsed          = Route[UsedOptions, []Used]{"used", get, "/v1/used", "What removed tasks have used, by day"}
	GetTimeline      = Route[TimelineOptions, Timeline]{"timeline", get, "/v1/timeline", "Who ran where: the attempts of a time, the earliest first"}
	GetScores        = Route[None, Scores]{"scores", get, "/v1/estimates/scores", "How well memory was estimated for tasks that have ended well"}
	GetAudit         = Route[AuditOptions, Audit]{"audit", get, "/v1/audit", "Acts of administrators; root reads all, others what is about them"}
	WatchLive        = Route[None, Stream]{"live", get, "/v1/live/events", "How things are, and once a second what has changed"}
	WatchTasks       = Route[None, Stream]{"events", get, "/v1/events", "Every task's changes from now on"}
	DrainDaemon      = Route[None, Info]{"drain", post, "/v1/drain", "Start nothing more, and end with the last running task"}
	PauseLaunches    = Route[With[CloseRequest], Info]{"pause", post, "/v1/launching", "Pause launching, or let it go on"}
	SetSpeed         = Route[With[SpeedChange], Info]{"speed", put, "/v1/speed", "Set the speed of a simulated server"}
	ProveGPUs        = Route[With[ProveRequest], []Check]{"prove", post, "/v1/prove", "Start a container on each GPU and compare its limits with those it was given"}
	CalibrateGPU     = Route[With[CalibrateRequest], Calibration]{"calibrate", post, "/v1/calibrate", "Measure what a process takes of a GPU beside its tensors, and estimate for that from now on"}
	GetWebTicket     = Route[None, WebLogin]{"web", post, "/v1/web", "Get a ticket that signs the caller in to the page, once"}
	ListGPUs         = Route[None, []GPU]{"gpus", get, "/v1/gpus", "The GPUs with what is reserved and used"}
	DrainGPUs        = Route[With[CloseRequest], []GPU]{"close-gpus", post, "/v1/gpus/close", "Drain GPUs, or open them again"}
	ListReservations = Route[None, []Reservation]{"reservations", get, "/v1/reservations", "What is reserved, the earliest first"}
	Reserve          = Route[With[ReserveRequest], Reservation]{"reserve", post, "/v1/reservations", "Keep GPUs for a user or a group for a time"}
	Unreserve        = Route[ReservationPath, None]{"unreserve", remove, "/v1/reservations/{id}", "End a reservation"}

	GetNotify  = Route[None, Notify]{"notify", get, "/v1/notify", "The caller's channels for messages, without their secrets"}
	SetNotify  = Route[With[NotifySettings], Notify]{"set-notify", put, "/v1/notify", "Replace the caller's channels for messages"}
	TestNotify = Route[With[NotifyTest], []NotifyTested]{"test-notify", post, "/v1/notify/test", "Send a test message now, and tell what came back"}

	SubmitTask   = Route[WithImages[Submit], Submitted]{"submit", post, "/v1/tasks", "Submit a task; it is durable when this answers"}
	SubmitTasks  = Route[WithImages[Submission], SubmittedAll]{"submit-all", post, "/v1/submissions", "Submit several tasks, all or none; they are durable when this answers"}
	PreviewTasks = Route[WithImages[Submission], Preview]{"preview", post, "/v1/submissions/preview", "What would become of a submission now; nothing is submitted"}
	ListTasks    = Route[ListOptions, []Task]{"list", get, "/v1/tasks", "List tasks, newest first"}

	GetTask     = Route[TaskPath, Task]{"inspect", get, "/v1/tasks/{task}", "One task"}
	GetWhy      = Route[TaskPath, Why]{"why", get, "/v1/tasks/{task}/why", "Why a task waits, GPU by GPU"}
	GetHistory  = Route[TaskPath, History]{"history", get, "/v1/tasks/{task}/history", "What happened to a task, and what was decided about it"}
	WatchTask   = Route[TaskPath, Stream]{"watch", get, "/v1/tasks/{task}/events", "A task's states from the present one to the last"}
	ReadLogs    = Route[LogsOfTask, Stream]{"logs", get, "/v1/tasks/{task}/logs", "A task's output; ends with the task"}
	AttachTask  = Route[TaskPath, Stream]{"attach", post, "/v1/tasks/{task}/attach", "Connect with the terminal, or the input, of a running task"}
	ExecInTask  = Route[OnTask[ExecRequest], Stream]{"exec", post, "/v1/tasks/{task}/exec", "Run a command in a running task"}
	UpdateTask  = Route[OnTask[Update], Task]{"update", patch, "/v1/tasks/{task}", "Change a task that has not ended"}
	StopTask    = Route[OnTask[StopRequest], Task]{"stop", post, "/v1/tasks/{task}/stop", "Stop a task"}
	HoldTask    = Route[OnTask[Note], Task]{"hold", post, "/v1/tasks/{task}/hold", "Keep a waiting task from being launched"}
	ReleaseTask = Route[OnTask[Note], Task]{"release", post, "/v1/tasks/{task}/release", "Let a held task go on"}
	SuspendTask = Route[OnTask[Note], Task]{"suspend", post, "/v1/tasks/{task}/suspend", "Take a running task off its GPUs without ending it"}
	ResumeTask  = Route[OnTask[Note], Task]{"resume", post, "/v1/tasks/{task}/resume", "Let a suspended task come back"}
	RequeueTask = Route[OnTask[RequeueRequest], Task]{"requeue", post, "/v1/tasks/{task}/requeue", "Stop a running task and put it back into the queue"}
	MoveTask    = Route[OnTask[MoveRequest], Task]{"move", post, "/v1/tasks/{task}/move", "Move a waiting task before or behind those of its owner"}
	PinTask     = Route[OnTask[PinRequest], Task]{"pin", post, "/v1/tasks/{task}/pin", "Say which GPUs a task goes to"}
	RemoveTask  = Route[TaskPath, None]{"remove", remove, "/v1/tasks/{task}", "Delete a finished task and its output"}

	GetGroup  = Route[GroupPage, []Task]{"group", get, "/v1/groups/{group}", "The tasks of a group, in order of number"}
	StopGroup = Route[GroupStop, Stopped]{"stop-group", post, "/v1/groups/{group}/stop", "Stop the unfinished tasks of a group"}

	PutSuite       = Route[SuitePut, SuiteState]{"put-suite", put, "/v1/suites/{suite}", "Bring the helpers, networks and volumes of a suite up; durable when this answers"}
	GetSuite       = Route[SuiteQuery, SuiteState]{"suite", get, "/v1/suites/{suite}", "How the helpers of a suite are"}
	DropSuite      = Route[SuiteDrop, SuiteRemoved]{"drop-suite", remove, "/v1/suites/{suite}", "Take the helpers and networks of a suite down"}
	ReadHelperLogs = Route[LogsOfHelper, Stream]{"helper-logs", get, "/v1/suites/{suite}/helpers/{helper}/logs", "The output of a helper"}
)

// QuotaOptions are the parameters of [GetQuotas].
type QuotaOptions struct {
	Names []string `query:"name,explode" maxItems:"100" doc:"users, or @groups, of this machine, who are listed even if carma knows nothing of them"`
}

// UsedOptions are the parameters of [GetUsed].
type UsedOptions struct {
	Since string `query:"since" doc:"a day, 2006-01-02"`
	Until string `query:"until" doc:"a day, 2006-01-02; what is before it"`
}

// TimelineOptions are the parameters of [GetTimeline].
type TimelineOptions struct {
	Since time.Time `query:"since" doc:"absent: a day before until"`
	Until time.Time `query:"until" doc:"absent: now"`
}

// AuditOptions select records of the audit log.
type AuditOptions struct {
	User  string    `query:"user" doc:"who acted, or whose task it was"`
	Mine  bool      `query:"mine" doc:"only the caller's own acts"`
	Task  int64     `query:"task" minimum:"0" doc:"only acts on this task"`
	Since time.Time `query:"since"`
	Until time.Time `query:"until"`
	Limit int       `query:"limit" minimum:"0" maximum:"100000" doc:"at most so many, the newest; 0: 50"`
}

// ReservationPath is the path parameter that names a reservation.
type ReservationPath struct {
	ID int `path:"id"`
}

// LogsOfTask are the parameters of [ReadLogs].
type LogsOfTask struct {
	TaskPath
	LogOptions
}

// LogOptions select lines of an output.
type LogOptions struct {
	Follow  bool `query:"follow" doc:"go on until the task is finished, across attempts"`
	Tail    int  `query:"tail" minimum:"0" doc:"only the last lines"`
	Attempt int  `query:"attempt" minimum:"0" doc:"only this attempt"`
}

// GroupPath is the path parameter that names a group.
type GroupPath struct {
	Name string `path:"group" doc:"a group's name"`
}

// GroupPage are the parameters of [GetGroup].
type GroupPage struct {
	GroupPath
	Limit int   `query:"limit" minimum:"0" maximum:"1000" doc:"at most so many on one page; 0: 1000"`
	After int64 `query:"after" minimum:"0" doc:"only tasks with higher numbers: the next page"`
}

// GroupStop is the input of [StopGroup].
type GroupStop struct {
	GroupPath
	Body StopRequest
}

// SuitePath is the path parameter that names a suite.
type SuitePath struct {
	Suite string `path:"suite" doc:"a suite's name; names are each user's own"`
}

// SuitePut is the input of [PutSuite].
type SuitePut struct {
	SuitePath
	RegistryAuth
	Check bool `query:"check" doc:"only look whether it could"`
	Body  Suite
}

// SuiteQuery are the parameters of [GetSuite].
type SuiteQuery struct {
	SuitePath
	Ended bool `query:"ended" doc:"of which helpers output is kept after its end"`
}

// SuiteDrop are the parameters of [DropSuite].
type SuiteDrop struct {
	SuitePath
	Volumes bool  `query:"volumes" doc:"its volumes too, with what is in them"`
	Grace   int64 `query:"grace" minimum:"0" doc:"nanoseconds between stop signal and kill; 0: as the helpers say"`
}

// LogsOfHelper are the parameters of [ReadHelperLogs].
type LogsOfHelper struct {
	SuitePath
	Helper string `path:"helper" doc:"as the suite's state names it: suite, helper and number"`
	Follow bool   `query:"follow" doc:"go on until it is gone or has ended for good"`
	Tail   int    `query:"tail" minimum:"0" maximum:"100000" doc:"only the last lines"`
}
