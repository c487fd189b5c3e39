// Package original reads and writes the forms of the original CARMA's traces: a
// shell script that submits and sleeps, and a .rad file for each kind of task.
//
// A script has lines like these. Only comments, sleep and submit.py are allowed:
//
//	python src/submit.py --task workloads/resnet2.rad
//	sleep 73
//	python src/submit.py --task workloads/vgg.rad
//
// A line may have several commands, separated by ; or &&. A submission may end in &. The
// argument of sleep is written as for the shell's sleep: 73, 0.5, 2m, or several.
//
// A .rad file has 12 lines, known by position: a comment, the environment, the
// command, the model's summary, the data set, the batch size, exclusive, the
// number of GPUs, and four figures in MiB. These are the measured peak and the
// estimates of Horus, FakeTensor and GPUMemNet; 40000 means none. The last four
// lines may be missing.
//
// Facts of our traces that do not fit into these forms are kept in comments that begin
// with "# carma:", so that a trace is read back as it was. In the script these are name,
// campaign, description and source; behind a submission, the task's name, user, priority
// and mem, if they differ from what would be read. Line 1 of a .rad file has the
// workload.
package original
