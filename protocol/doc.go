// Package protocol turns frames into kmsg requests and responses into frames,
// checks every length before it allocates, and holds the coded error type.
package protocol
