// Package mapper makes every scheduling decision of carma: which task gets which
// GPUs, when, and with how much memory.
//
// It is a pure state machine. [State.Step] takes one [model.Event] and returns the
// [model.Decision]s to carry out, in order. Equal states and equal events give equal
// decisions. Time is data: every event carries its instant, and a delay is a
// [model.SetTimer] that comes back as [model.TimerFired]. The package reads no clock, starts no
// goroutine, does no I/O, and imports only the standard library and the pure
// packages below it. So the daemon (real time, real containers), `carma replay`
// (virtual time, modelled GPUs) and the tests run the same code.
//
// It does not estimate memory (package estimator), run containers (package
// containers) or keep anything on disk (package runner).
//
// # What the host must do
//
// The host is the program that drives the State: the daemon (package runner) or
// the simulator (package mapper/sim). Nothing of the simulator outlives its
// process, so duties 4, 5, 8, 14 and 15 are the daemon's alone.
//
//  1. Use one goroutine. A State has no locks: a second caller is a data race.
//     Other goroutines send events, or questions that the owner runs.
//     Kept by runner/loop/loop.go (Run), runner/loop/inbox.go (Look).
//  2. Begin with [model.Configured], [model.GPUsFound] and [model.EngineChanged], and with [model.HostsFound]
//     where host memory and processors are allocated; and send each again
//     when it changes. Validate options before: invalid ones change nothing.
//     Without GPUs, or with the engine down, nothing is placed.
//     Kept by runner/runner.go (journalStartup, engineChanged), runner/reload.go
//     (Reconfigure), mapper/sim/engine.go (newEngine).
//  3. Check a request before it becomes a [model.TaskSubmitted], with [State.Check]
//     and for its dependencies. The state forgets tasks that have ended, so drop
//     dependencies that are met. A request that cannot work becomes a failed task.
//     Kept by runner/admission/submit.go (possible), runner/admission/batch.go (plan).
//  4. Store an event before Step sees it. Otherwise a crash forgets why a container
//     runs, and a submission that was answered is lost.
//     Kept by runner/loop/loop.go (applyPart).
//  5. Store the decisions before you carry them out; a [model.SetTimer] alone can wait for
//     the next commit. Otherwise a newer program may decide differently after a
//     crash, and an attempt runs twice.
//     Kept by runner/loop/decisions.go (flushDue, Flush).
//  6. Apply every stored event once, in the order of the journal. Carry out the
//     decisions of a step in the order given, after the decisions of earlier steps.
//     Otherwise records show older states, and a Stop that comes before the Launch
//     of its attempt finds nothing to stop.
//     Kept by runner/loop/decisions.go (carryDue), runner/execute.go (carryOut),
//     mapper/sim/engine.go (step).
//  7. Answer every [model.Launch] with [model.Started] once its container runs, and then with
//     one [model.Exited]. A launch that fails is an Exited without Started. Name the
//     attempt: reports on another attempt are ignored. After a lost report the
//     memory stays allocated permanently.
//     Kept by runner/attempt/attempt.go (execute), runner/attempt/exit.go (exited),
//     mapper/sim/run.go (begin).
//  8. Keep stopping after a [model.Stop] until the attempt has ended. The core asks once.
//     Otherwise the task stays in phase stopping and its memory stays allocated.
//     Kept by runner/attempt/stop.go (stopWhenAsked).
//  9. Answer [model.SetTimer] with [model.TimerFired] at that instant or later. Only the earliest one
//     counts. After a restart ask [State.NextTimer]. Otherwise delays, back-offs,
//     time limits and ageing wait for the next event.
//     Kept by runner/loop/loop.go (untilWake), mapper/sim/engine.go (loop).
//  10. Keep what [model.Finish] carries. The state forgets the task in that step.
//     Kept by runner/loop/decisions.go (decided), mapper/sim/engine.go (finish).
//  11. Send [model.Sampled] when memory in use, activity or health of a GPU changes, with
//     what each task uses there. Otherwise memory of other processes is attributed to
//     tasks, and the watchdog, shrinking, learning and the SMACT cap see nothing.
//     Kept by runner/monitor/monitor.go (Run), mapper/sim/engine.go (look).
//  12. Never let time go back, across restarts either. An event with an older
//     instant happens "now", so timers move and waiting times are wrong.
//     Kept by runner/clock/clock.go (Now), runner/clock_boot.go (restoreClock), the agenda of
//     mapper/sim/agenda.go (next).
//  13. Number tasks upwards. A number that is not above the last one counts as a
//     repetition and is ignored, so the submission is lost.
//     Kept by runner/load.go (load), mapper/sim/engine.go (arrive).
//  14. After a restart take the newest snapshot and apply the events after it.
//     Recorded decisions stand: compare them with the decisions of Step, and from the
//     first difference on use [State.Apply]. Only events without recorded
//     decisions are decided now. Otherwise a newer program gives up running attempts
//     and starts them again.
//     Kept by runner/loop/replay.go (rebuild, replay).
//  15. Then check the state with [State.Audit], find the container of each placed
//     task, and continue with duties 7 and 8. Otherwise running attempts are lost.
//     Kept by runner/loop/load.go (Load), runner/restart.go (resumeAttempts).
//  16. Change nothing that the State returns, and keep no pointer of [State.Task]
//     over the next Step. Decisions are copies and may be kept.
//     Kept by runner/record/record.go (WithTask).
//  17. Send [model.ThroughputReported] when the output of tasks shows their speed: at most
//     once a minute for each task, as a mean over a time with the same neighbours
//     throughout. [State.Speed] says since when they are the same (it follows
//     GPU.ChangedAt). Name the attempt, and the unit where it changes. Otherwise
//     predictions are not corrected, and no wrong placement is undone.
//     Kept by runner/throughput/report.go (send), mapper/sim/run.go (pace).
//  18. Answer every [model.Suspend] with [model.SuspendDone] and every [model.Resume] with [model.Resumed], with
//     the reason where it failed. An attempt that is lost meanwhile is [model.Exited]. Set
//     GPUInfo.Suspend; tasks on other GPUs are never suspended. Without an answer the
//     task holds its GPUs, or its host memory, permanently.
//     Kept by runner/attempt/suspend.go (suspend), runner/attempt/resume.go (serveResume),
//     mapper/sim/suspend.go (copied).
package mapper
