// Package progress reads the progress of a training from its output: tqdm's bars, Hugging
// Face's Trainer, Lightning, Keras, YOLO, the log lines of timm, torchvision, OpenMMLab,
// fairseq, Megatron and the like, and plain "step 120/5000".
//
// A [Reader] belongs to one attempt of one task. It gets the output as it arrives
// ([Reader.Feed], [Reader.Line]) and reports at any time
//
//   - how much is done, how fast it goes and when it will end ([Reader.Progress]);
//   - how fast it went between two times, with an uncertainty ([Reader.Speed]),
//     which shows the cost of a neighbour on the GPU;
//   - how many parameters the model has, if that was printed ([Reader.Parameters]).
//
// # For a scheduler
//
// Lines give no speed that could be compared between programs; they show how the speed of
// one program changes. If a neighbour started at time c:
//
//	alone, ok1 := r.Speed(began, c)
//	beside, ok2 := r.Since(c.Add(settling))
//	ratio := beside.Rate / alone.Rate // 0.8: a fifth slower
//	// significant if |1 - ratio| is well above ratio * math.Hypot(beside.Error, alone.Error)
//
// Progress.Rate is the speed of the last 16 intervals between lines, and at least a
// minute, so it has followed a change after as many; Since has it after the first few,
// with an error that reflects their small number. Both leave out pauses (evaluation,
// checkpoints); Progress.Remaining includes them.
//
// # Bounds
//
// Memory is constant: 24 KiB, and a line of up to 4 KiB per stream. At most 2000 lines of
// output a second are read and 50 are parsed, in bursts of up to 300. In the rest only
// line ends are searched. By BenchmarkFlood and BenchmarkTraining that is 0.02 to 0.2 ms
// a MB of a flood at 100 MB/s, and 10 to 30 us a parsed line. The package reads no clock,
// so equal output with equal times gives equal results.
//
// # What is not read
//
// If the number of epochs is not printed (Lightning's bar, timm, torchvision, fairseq),
// Total is 0 and Rate is known. Each fold or stage restarts the count. A bar without a
// name that neither counts epochs nor runs within a bar that does may be one epoch of
// several: the doubt PerhapsOf. Not read are tables, Rich's live displays of several
// lines, words of other languages, and progress that is only written to files or
// trackers. An inference job's "Generating" or "Predicting" bar counts as preparation.
// docs/progress.md lists programs, and TestCases replays a recording of each.
//
// Output is not verified: a program can print anything. Use it to display and to schedule
// the task's own GPUs, never as proof of anything.
package progress
