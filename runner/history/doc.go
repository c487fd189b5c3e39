// Package history reads the history of a task from the journal: the events and decisions about
// the task, each as a line of text for people, with the reasons why it waited between them. It
// caches the latest requested histories, to continue from, and reads only the beginning and the
// end of a long journal. Other users than the owner get lines without text from the program.
package history
