package endtext

import "carma/internal/lazyregexp"

// Forms of lines that are no claims.
var (
	ansi   = lazyregexp.New(`\x1b\[[0-9;?]*[a-zA-Z]`)
	digits = lazyregexp.New(`0x[0-9a-fA-F]+|\d+`)
	// collected matches the prefix that ts, journald and other log collectors add to each
	// line.
	collected = lazyregexp.New(`^(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?: std(?:out|err) [FP])?|[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?: [\w.-]+ [\w./-]+\[\d+\]:)?)(?:[ \t]|$)`)
	// marked matches the prefix of a process or container in a line.
	marked = lazyregexp.New(`^(\[(rank ?)?\d+\]:|\[default\d+\]:|\(\w+ pid=\d+(, ip=[\d.]+)?\)|\d+:|\[\d+,\d+\]<std(err|out)>:?|[\w.-]+-\d+ +\||\(\w+ \w*rank=?\d+\)) ?`)
	// exception matches a dotted name, then a colon or the line's end.
	exception = lazyregexp.New(`^([A-Za-z_]\w*\.)*[A-Z_]\w*(\([\w., ]*\))?(:|$)|^\w+(\.\w+)*\.(error|timeout)(:|$)`)
	// levelName matches a log line that looks like an exception.
	levelName = lazyregexp.New(`^(INFO|WARNING|WARN|DEBUG|ERROR|CRITICAL|FATAL|NOTE|Epoch|Step|Loss)\b`)
	// namedException matches an exception by its full name, or by its type's ending.
	namedException = lazyregexp.New(`^(([a-z_]\w*\.)+[A-Z_]\w*|[A-Z_]\w*(Error|Exception))(: |$)`)
	// sourceLine matches the line of source code that pytest, IPython, a shell's trace or
	// a diff marks.
	sourceLine = lazyregexp.New(`^(> {3,}|-+> ?\d+ |\++ +)\S`)
	// frameLine matches a frame of a Python traceback.
	frameLine = lazyregexp.New(`^ {2,4}File "[^"]+", line \d+, in \S`)
	handlerRe = lazyregexp.New(`^(Exception ignored in|Exception in thread|Error in (atexit|sys\.))`)
	chainRe   = lazyregexp.New(`^(During handling of the above exception|The above exception was the direct cause)`)
	chatter   = lazyregexp.New(chatterForm)
	// progressLine matches a line of ordinary work.
	progressLine = lazyregexp.New(`(?i)\b\d+(?:\.\d+)? ?%(?: ?\|| +\d+/\d+)|\b\d+ ?/ ?\d+\b.*(?:\[|it/s|s/it|loss|eta)|it/s\b|\bs/it\b|\b(?:train|val|valid|test|training|validation)?[ _/-]?loss\b *[=:]? *\d|\b(?:epoch|step|iter\w*)\b\W*\d+.*(?:loss|lr|acc|time|ok|done)|` +
		`^(?:epoch|step|iter(?:ation)?)\b[ \[:#]*\d+|: ok\b|\bnow (?:using|training)\b|\bcontinuing (?:with|training)\b|batch size is now|\btrial \d+ (?:finished|completed)\b|saved? (?:checkpoint|model)|\bcheckpoint saved|training (?:finished|complete)`)
	// killedRank matches the messages of launchers about a process that was ended by signal
	// 9.
	killedRank = lazyregexp.New(`exitcode *: *-9\b|Signal 9 \(SIGKILL\)|killed by signal:? (?:9|Killed)|exited on signal 9|died with <Signals\.SIGKILL|received signal 9|returned non-zero exit status 137`)
	// cudaError matches a line in which a program reports a CUDA error.
	cudaError = lazyregexp.New(`(?i:cuda (runtime |driver )?(error|failure))|cudaError|CUDA_ERROR_|CU(BLAS|DNN)_STATUS_|device-side assert|illegal memory access|unspecified launch failure`)
	// outcome matches an exception that names what failed but not the cause. An example is a
	// binding's exception for a native library, which has printed the cause.
	outcome = lazyregexp.New(`(?i)\b(?:failed|could not|couldn't|unable|cannot) (?:to )?(?:load|create|init\w*|construct|start|open|build)\b[\w' -]*(?:model|context|engine|session|backend|runtime|pipeline|predictor|executor)\b`)
	// silent matches an exception without a message of its own.
	silent = lazyregexp.New(`^([A-Za-z_]\w*\.)*(Assertion|Runtime)Error:?$|^AttributeError: 'NoneType' object has no`)
	// noOutcome matches text in such an exception that names its cause.
	noOutcome = lazyregexp.New(`(?i)no such file|not found|does not exist|invalid|unsupported|unknown|mismatch|permission denied|version|corrupt`)
	// initWarning matches PyTorch's warning that CUDA does not work on this machine. It is an
	// error of the machine, although its level is a warning.
	initWarning = lazyregexp.New(`\bUserWarning: CUDA initialization: `)
	// pinCall matches the last call of a traceback that allocates pinned host memory. It
	// does not match a data loader's own pinning thread: there, the first call that needs
	// the GPU fails.
	pinCall = lazyregexp.New(`\.pin_memory\(|\bpin_memory=True|\bcudaHost(?:Alloc|Register)\b`)
	pinLoop = lazyregexp.New(`utils/data/_utils/pin_memory\.py`)
	// consequence matches an exception that usually follows from a failure elsewhere, mostly
	// in another process. Such an exception does not show the cause.
	consequence = lazyregexp.New(`ChildFailedError|Process(Raised|Exited)Exception|Dist(Backend|Network|Store)?Error|(?i:\bnccl|\bgloo\b)|` +
		`(?i:connection (closed|reset|refused|aborted))|Connection\w+Error|BrokenPipeError|Broken ?[Pp]rocess ?[Pp]ool|EOFError|` +
		`CalledProcessError|SystemExit|SignalException|KeyboardInterrupt|InactiveRpcError|Ray(Task|Actor)Error|ActorDiedError|` +
		`WorkerCrashedError|DataLoader worker|TimeoutError|(?i:watchdog|process group|socket timeout)|CU(BLAS|DNN)_STATUS_|` +
		`(?i:cudnn (error|failed))|InternalError|(Xla|Jax)RuntimeError: (INTERNAL|ABORTED|UNAVAILABLE|FAILED_PRECONDITION|DEADLINE)|` +
		`CUDA error: (unspecified launch failure|unknown error)|(?i:see (the )?(root cause|error|log|output|message)s? (above|for)|see above|root cause)|` +
		`(?i:(engine|server|worker|actor|child|sub)[ _-]?(core|process|group)?\w*:? (\w+ )?(init\w* failed|failed to (start|launch|init\w*)|died|dead|exited|crashed|terminated|is not (alive|running)))|\bthread exited unexpectedly|EngineDeadError|EngineGenerateError|KilledWorker`)
	// specific matches exceptions that name their own cause, by their type or message.
	specific = lazyregexp.New(`^([A-Za-z_]\w*\.)*(FileNotFound|FileExists|NotADirectory|IsADirectory|Key|Index|Lookup|Import|ModuleNotFound|Name|Syntax|Indentation|ZeroDivision|FloatingPoint|Overflow|Permission|Unicode\w*|JSONDecode|Type|Attribute|Value|OS|IO|NotImplemented|HTTP|URL|Config\w*|Validation|Parser?|ArgumentParser|Shape|Checkpoint\w*|Operational|Integrity|Programming|Database)(Error|Exception)\b|` +
		`(?i:: .*(no such file|mismatch|expected|not found|undefined|undeclared|dtype|\bshapes?\b|invalid (argument|literal|index|template|value)|syntax|permission denied|unsupported|\bnan\b|divi(de|sion) by zero|timed? ?out|connection|corrupt))`)
	// goesOn matches a line that reports that the program continues after an error.
	// suggestion matches a line that only proposes what to do.
	goesOn     = lazyregexp.New(`(?i)\b(?:retrying|falling back|fell back|skipping|continuing|resuming|recovered|restarting with|using default|trying again|will retry)\b`)
	suggestion = lazyregexp.New(`(?i)\b(?:try|consider|please|can|could|should|you|set)\b`)
)

// chatterForm matches lines that frameworks and launchers print around a failure. They do
// not show that the program continued.
const chatterForm = `^(\[?[WEIF]\d{4} |\S+\.so[.\d]*\(|\[[WEIF]\d* |\[[WEIF] |frame #|#\d+ |\d+ +0x|[|+=\-*│╭╰┃]|wandb: |srun: |slurmstepd: |\[?HAMI-core|` +
	`Exception (raised|ignored|in) |terminate called|Fatal Python error|Aborted|Segmentation fault|Killed|Bus error|` +
	`CUDA kernel errors|For debugging consider|Compile with|Device-side|Hint:|Root Cause|Failures:|Error executing job|` +
	`Set the environment variable|Current thread|Thread 0x|Extension modules|Last error:|nccl\w+Error:|Cuda failure|` +
	`(During handling|The above exception)|<NO_OTHER_FAILURES>|(WARNING|ERROR):torch\.distributed|ray\.exceptions|at [\w.$/<>]+[(:]|@ )|` +
	`torch[./]distributed|ProcessGroup(NCCL|Gloo)|NCCL (INFO|WARN)|resource_tracker|UserWarning|FutureWarning|[Bb]acktrace|MPI_ABORT|with errorcode|You may or may not see output|exactly when Open MPI|[Mm]pirun|prterun|^SIG[A-Z]+\b|core dumped|[Ss]tack ?trace|` +
	`\b(tensorflow|xla|external|tsl)/\S+\.cc:\d+`
