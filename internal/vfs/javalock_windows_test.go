package vfs

// javaLock tries what Java's FileChannel.tryLock does: there it is the same as
// Lock.
func javaLock(name string) string {
	l, err := OS().Lock(name)
	if err != nil {
		return "held"
	}
	_ = l.Close()
	return "locked"
}
