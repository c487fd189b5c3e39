package rights

// Action is an operation that a caller requests.
type Action string

// Actions on a task.
const (
	See             Action = "see"
	Environment     Action = "environment"
	ListEnvironment Action = "list-environment"
	Output          Action = "output"
	Progress        Action = "progress"
	Undelivered     Action = "undelivered"
	Attach          Action = "attach"
	Exec            Action = "exec"
	Stop            Action = "stop"
	Remove          Action = "remove"
	Hold            Action = "hold"
	Release         Action = "release"
	Suspend         Action = "suspend"
	Resume          Action = "resume"
	Requeue         Action = "requeue"
	Move            Action = "move"
	Pin             Action = "pin"
	Update          Action = "update"
)

// Actions on a suite.
const (
	SeeSuite     Action = "see-suite"
	DropSuite    Action = "drop-suite"
	DropVolumes  Action = "drop-volumes"
	HelperOutput Action = "helper-output"
)

// Actions on the server.
const (
	Submit       Action = "submit"
	SeeServer    Action = "see-server"
	SeeUse       Action = "see-use"
	Messages     Action = "messages"
	Page         Action = "page"
	Doctor       Action = "doctor"
	Drain        Action = "drain"
	DrainGPUs    Action = "drain-gpus"
	Pause        Action = "pause"
	Reserve      Action = "reserve"
	Unreserve    Action = "unreserve"
	Speed        Action = "speed"
	Prove        Action = "prove"
	Calibrate    Action = "calibrate"
	AllScores    Action = "all-scores"
	Channels     Action = "server-channels"
	HighPriority Action = "high-priority"
	Unlimited    Action = "unlimited"
	AnyAccount   Action = "any-account"
	AnyNamespace Action = "any-namespace"
	HostTasks    Action = "host-tasks"
	ChooseUser   Action = "choose-user"
	MountAll     Action = "mount-all"
	OwnAudit     Action = "own-audit"
	AllAudit     Action = "all-audit"
)

// reach is the extent of the right of users who are not the owner.
type reach uint8

const (
	never    reach = iota
	ifOpen         // for tasks that are open
	ordinary       // for tasks of ordinary users, not for protected ones
	always
)

// taskRule is the row of an action on a task or a suite. The owner and root always may.
type taskRule struct {
	action Action
	text   string // for the documentation
	verb   string // for a refusal, before "task 7"
	others reach  // reach of ordinary users
	admins reach  // reach of administrators
	read   bool   // the action changes nothing
}

// taskRules is the table of the actions on tasks.
var taskRules = []taskRule{
	{See, "see a task's image, command line, mounts, labels, GPUs, phase, outcome, times; `why`, `history`", "see", always, always, true},
	{Environment, "see values of its environment (`inspect`)", "read the environment of", ifOpen, ordinary, true},
	{ListEnvironment, "see them in listings and streams of several tasks", "list the environment of", ifOpen, never, true},
	{Output, "read its output, and messages that quote it", "read the output of", ifOpen, ordinary, true},
	{Progress, "see what its output tells: unit, epoch, done, total, rate, expected end, number of parameters", "see the progress of", ifOpen, ordinary, true},
	{Undelivered, "see the messages about it that were not delivered", "see the messages of", never, ordinary, true},
	{Attach, "`attach` to its terminal", "attach to", never, ordinary, false},
	{Exec, "`exec`: run a command in it", "exec in", never, ordinary, false},
	{Remove, "remove it with its output", "remove", never, ordinary, false},
	{Stop, "stop it, also as part of its group", "stop", never, always, false},
	{Hold, "hold it", "hold", never, always, false},
	{Release, "release it", "release", never, always, false},
	{Suspend, "suspend it", "suspend", never, always, false},
	{Resume, "resume it", "resume", never, always, false},
	{Requeue, "requeue it: the same program starts again", "requeue", never, always, false},
	{Move, "move it in the queue", "move", never, always, false},
	{Pin, "name the GPUs it goes to", "pin", never, always, false},
	{Update, "change its priority, limits, resources, estimate, name, labels. Nobody can change its program, environment, mounts or user", "change", never, always, false},
}

// suiteRules is the table of the actions on suites.
var suiteRules = []taskRule{
	{SeeSuite, "see the state of a suite's helpers", "see", never, always, true},
	{DropSuite, "take a suite down", "take down", never, always, false},
	{DropVolumes, "delete its volumes with what is in them", "delete the volumes of", never, ordinary, false},
	{HelperOutput, "read the output of its helpers", "read the output of", never, ordinary, true},
}

// serverRule is the row of an action on the server.
type serverRule struct {
	action Action
	text   string // for the documentation
	name   string // for a refusal, before "is for ..."
	roles  Role   // roles that may do it
}

// serverRules is the table of the actions on the server.
var serverRules = []serverRule{
	{Submit, "submit; look what would become of a submission", "submitting", everybody},
	{SeeServer, "see GPUs, queue, reservations, `info`", "the state of the server", everybody},
	{Messages, "set and test the own channels of messages", "channels of messages", everybody},
	{OwnAudit, "`history --audit`: acts of administrators on the own tasks, and the own acts", "the audit log", everybody},
	{SeeUse, "see use, quotas and energy of other users", "the use of others", machineUsers},
	{Page, "sign in to the page", "the page", machineUsers},
	{Doctor, "`doctor`", "doctor", machineUsers},
	{Drain, "end the daemon with its last task", "draining the daemon", administrators},
	{DrainGPUs, "drain GPUs, and open them again", "draining GPUs", administrators},
	{Pause, "pause launching, and let it go on", "pausing", administrators},
	{Reserve, "reserve GPUs", "a reservation", administrators},
	{Unreserve, "end reservations", "ending a reservation", administrators},
	{Speed, "set the speed of simulated GPUs", "the speed of the simulated time", administrators},
	{Prove, "`doctor --prove`", "a proof of the limits", administrators},
	{Calibrate, "`doctor --calibrate`", "a calibration", administrators},
	{AllScores, "see how well memory was estimated for everybody's tasks", "the scores of everybody", administrators},
	{Channels, "see and test the server's channels of messages", "a test of the server's channels", administrators},
	{HighPriority, "priority high, whatever `high-priority` says", "priority high", administrators},
	{Unlimited, "no limits of one user (`user-tasks`, `user-bytes`, `user-high`, `user-suites`, ...)", "more than one user may have", administrators},
	{AnyAccount, "submit for a group that one is not in", "another group's account", administrators},
	{AnyNamespace, "at the socket: choose namespace and service account", "another namespace", administrators},
	{HostTasks, "tasks without an image, unless `host-tasks` is none", "tasks without an image", administrators},
	{MountAll, "mount every path, publish ports below 1024, add every group", "mounting every path", trusted},
	{ChooseUser, "choose the user that a task runs as (on a cluster: as the namespace allows)", "choosing the user of a task", Root | ClusterUser | ClusterAdmin},
	{AllAudit, "`history --audit` of everybody", "the audit log of everybody", trusted},
}
