package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// Kind says whose broker a test runs against.
type Kind string

// The two brokers: the one under test, and the one whose answers are right.
const (
	Barnabas Kind = "barnabas"
	Kafka    Kind = "kafka"
	// KafkaOlder judges the versions and message formats that Kafka 4 dropped.
	KafkaOlder Kind = "kafka-3.9"
)

// KindFromEnv reads BROKER_KIND. Without it the broker is ours.
func KindFromEnv() Kind {
	if k := Kind(os.Getenv("BROKER_KIND")); k != "" {
		return k
	}
	return Barnabas
}

// ErrNoJVM says that this machine has no Java at all, the only reason for which the oracle may be left out.
var ErrNoJVM = errors.New("there is no JVM on this machine")

// Root is the folder of compat-tests.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// Binary is the broker under test: BARNABAS_BIN, or bin/barnabas of the repository.
func Binary() (string, error) {
	bin := os.Getenv("BARNABAS_BIN")
	if bin == "" {
		bin = filepath.Join(Root(), "..", "bin", "barnabas")
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(bin); err != nil {
		return "", fmt.Errorf("the broker to test: %w (make build)", err)
	}
	return bin, nil
}

// JavaLibs resolves Apache Kafka's class path, from the cache when it is there, and returns its folder.
func JavaLibs() (string, error) {
	return javaLibs(exec.Command(filepath.Join(Root(), "oracle", "fetch.sh")))
}

// OlderVersion is the last Kafka that serves every version and both old message formats.
const OlderVersion = "3.9.2"

// JavaLibsOlder is JavaLibs of an Apache Kafka before 4.0; ORACLE_OLDER_DIR shares its folder.
func JavaLibsOlder() (string, error) {
	cmd := exec.Command(filepath.Join(Root(), "oracle", "fetch.sh"))
	cmd.Env = append(os.Environ(), "ORACLE_VERSION="+OlderVersion, "ORACLE_DIR="+os.Getenv("ORACLE_OLDER_DIR"))
	return javaLibs(cmd)
}

func javaLibs(cmd *exec.Cmd) (string, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 {
		return "", fmt.Errorf("%w: %s", ErrNoJVM, strings.TrimSpace(stderr.String()))
	}
	if err != nil {
		return "", fmt.Errorf("resolve Apache Kafka from Maven: %w: %s", err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// JavaArgs are the arguments of java for one of Apache Kafka's classes.
func JavaArgs(libs string, heapMB int, class string, args ...string) []string {
	quiet := "-Dlog4j2.configurationFile=file:" + filepath.Join(Root(), "oracle", "log4j2.properties")
	quietBefore4 := "-Dlog4j.configuration=file:" + filepath.Join(Root(), "oracle", "log4j.properties")
	java := []string{"-cp", filepath.Join(libs, "*"), quiet, quietBefore4}
	if heapMB > 0 {
		java = append(java, "-Xmx"+strconv.Itoa(heapMB)+"m")
	}
	return append(append(java, class), args...)
}
