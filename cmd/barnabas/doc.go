// Command barnabas is the broker and everything to work with it: one file for
// each command, all of them in the list of commands in main.go.
//
// It reads flags, environment and files, hands a checked configuration to package
// server, and prints. Exit codes: 0 done, 1 it did not work, 2 a wrong flag,
// variable, setting or argument.
package main
