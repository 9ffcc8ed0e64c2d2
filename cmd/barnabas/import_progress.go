package main

import (
	"fmt"
	"io"
	"time"

	"github.com/barnabas-mq/barnabas/server/importer"
)

// progressEvery is how often a long import says how far it is.
const progressEvery = 2 * time.Second

// importProgress prints how far an import is. It belongs to the import's
// goroutine.
type importProgress struct {
	w           io.Writer
	total, done int64
	began, said time.Time
	topic       *importer.TopicPlan
}

func newImportProgress(w io.Writer, plan *importer.Plan) *importProgress {
	return &importProgress{w: w, total: plan.SizeBytes(), began: time.Now(), said: time.Now()}
}

// Topic begins a topic.
func (p *importProgress) Topic(t *importer.TopicPlan) { p.topic = t }

// Moved says now and then how much has been read.
func (p *importProgress) Moved(n int64) {
	p.done += n
	now := time.Now()
	if now.Sub(p.said) < progressEvery {
		return
	}
	p.said = now
	perSecond := int64(float64(p.done) / now.Sub(p.began).Seconds())
	fmt.Fprintf(p.w, "%s: %s of %s, %s/s\n", p.topic.Name, sizeText(p.done), sizeText(p.total), sizeText(perSecond))
}

// Done ends a topic; what went wrong is told at the end.
func (p *importProgress) Done(t *importer.TopicPlan, err error) {
	if err != nil {
		fmt.Fprintf(p.w, "%s: %v\n", t.Name, err)
	}
}
