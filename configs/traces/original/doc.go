// Package original reads and writes the forms in which the original CARMA has
// its traces: a shell script that submits and sleeps, and a .rad file for each
// kind of task.
//
// A script is lines like these; others than comments, sleep and submit.py are
// refused:
//
//	python src/submit.py --task workloads/resnet2.rad
//	sleep 73
//	python src/submit.py --task workloads/vgg.rad
//
// Several commands may stand on a line, separated by ; or &&, and a submission
// may end in &. sleep takes what the shell's does: 73, 0.5, 2m, or several.
//
// A .rad file has 12 lines by position: a comment, the environment, the
// command, the model's summary, the data set, the batch size, exclusive, the
// number of GPUs, and four figures in MiB: the measured peak and the estimates
// of Horus, FakeTensor and GPUMemNet, 40000 where there is none. The last four
// may be missing.
//
// What a trace of ours has and these forms have not is kept in comments that
// begin with "# carma:", so that a trace comes back as it was: in the script
// name, campaign, description and source, and behind a submission the task's
// name, user, priority and mem where they differ from what would be read; in
// line 1 of a .rad file the workload.
package original
