package network

import (
	"fmt"
	"log/slog"
)

// gnetLogger brings gnet's lines into the broker's log; its own logger would write
// to stdout. What gnet calls information is of interest to its developers only.
type gnetLogger struct{ log *slog.Logger }

func (l gnetLogger) Debugf(format string, args ...any) {}

func (l gnetLogger) Infof(format string, args ...any) {
	l.log.Debug("gnet: " + fmt.Sprintf(format, args...))
}

func (l gnetLogger) Warnf(format string, args ...any) {
	l.log.Warn("gnet: " + fmt.Sprintf(format, args...))
}

func (l gnetLogger) Errorf(format string, args ...any) {
	l.log.Error("gnet: " + fmt.Sprintf(format, args...))
}

func (l gnetLogger) Fatalf(format string, args ...any) {
	l.log.Error("gnet: " + fmt.Sprintf(format, args...))
}
