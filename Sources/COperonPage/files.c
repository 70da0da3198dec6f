// Written by scripts/generate-page.
#include "operon_page.h"

// As in COperonAPI: #embed is part of C23.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char actions_queues_js[] = {
#embed "files/actions-queues.js"
};
static const unsigned char actions_js[] = {
#embed "files/actions.js"
};
static const unsigned char api_js[] = {
#embed "files/api.js"
};
static const unsigned char camera_js[] = {
#embed "files/camera.js"
};
static const unsigned char controls_js[] = {
#embed "files/controls.js"
};
static const unsigned char dialogs_js[] = {
#embed "files/dialogs.js"
};
static const unsigned char events_js[] = {
#embed "files/events.js"
};
static const unsigned char explanation_js[] = {
#embed "files/explanation.js"
};
static const unsigned char format_js[] = {
#embed "files/format.js"
};
static const unsigned char graph_frame_js[] = {
#embed "files/graph-frame.js"
};
static const unsigned char index_html[] = {
#embed "files/index.html"
};
static const unsigned char live_js[] = {
#embed "files/live.js"
};
static const unsigned char log_lines_js[] = {
#embed "files/log-lines.js"
};
static const unsigned char log_js[] = {
#embed "files/log.js"
};
static const unsigned char notices_js[] = {
#embed "files/notices.js"
};
static const unsigned char observable_js[] = {
#embed "files/observable.js"
};
static const unsigned char operations_table_js[] = {
#embed "files/operations-table.js"
};
static const unsigned char pace_js[] = {
#embed "files/pace.js"
};
static const unsigned char page_css[] = {
#embed "files/page.css"
};
static const unsigned char page_js[] = {
#embed "files/page.js"
};
static const unsigned char payload_js[] = {
#embed "files/payload.js"
};
static const unsigned char picture_drawing_js[] = {
#embed "files/picture-drawing.js"
};
static const unsigned char preact_js[] = {
#embed "files/preact.js"
};
static const unsigned char resource_js[] = {
#embed "files/resource.js"
};
static const unsigned char routes_js[] = {
#embed "files/routes.js"
};
static const unsigned char session_js[] = {
#embed "files/session.js"
};
static const unsigned char shortcuts_js[] = {
#embed "files/shortcuts.js"
};
static const unsigned char timeline_canvas_js[] = {
#embed "files/timeline-canvas.js"
};
static const unsigned char timeline_drawing_js[] = {
#embed "files/timeline-drawing.js"
};
static const unsigned char timeline_scale_js[] = {
#embed "files/timeline-scale.js"
};
static const unsigned char ui_js[] = {
#embed "files/ui.js"
};
static const unsigned char view_cluster_js[] = {
#embed "files/view-cluster.js"
};
static const unsigned char view_graph_js[] = {
#embed "files/view-graph.js"
};
static const unsigned char view_graphs_js[] = {
#embed "files/view-graphs.js"
};
static const unsigned char view_operation_js[] = {
#embed "files/view-operation.js"
};
static const unsigned char view_picture_js[] = {
#embed "files/view-picture.js"
};
static const unsigned char view_queues_js[] = {
#embed "files/view-queues.js"
};
static const unsigned char view_timeline_js[] = {
#embed "files/view-timeline.js"
};
static const unsigned char view_triggers_js[] = {
#embed "files/view-triggers.js"
};
static const unsigned char view_workers_js[] = {
#embed "files/view-workers.js"
};

static const struct operon_page_file files[] = {
    {"actions-queues.js", "text/javascript; charset=utf-8",
     actions_queues_js, sizeof actions_queues_js},
    {"actions.js", "text/javascript; charset=utf-8",
     actions_js, sizeof actions_js},
    {"api.js", "text/javascript; charset=utf-8",
     api_js, sizeof api_js},
    {"camera.js", "text/javascript; charset=utf-8",
     camera_js, sizeof camera_js},
    {"controls.js", "text/javascript; charset=utf-8",
     controls_js, sizeof controls_js},
    {"dialogs.js", "text/javascript; charset=utf-8",
     dialogs_js, sizeof dialogs_js},
    {"events.js", "text/javascript; charset=utf-8",
     events_js, sizeof events_js},
    {"explanation.js", "text/javascript; charset=utf-8",
     explanation_js, sizeof explanation_js},
    {"format.js", "text/javascript; charset=utf-8",
     format_js, sizeof format_js},
    {"graph-frame.js", "text/javascript; charset=utf-8",
     graph_frame_js, sizeof graph_frame_js},
    {"index.html", "text/html; charset=utf-8",
     index_html, sizeof index_html},
    {"live.js", "text/javascript; charset=utf-8",
     live_js, sizeof live_js},
    {"log-lines.js", "text/javascript; charset=utf-8",
     log_lines_js, sizeof log_lines_js},
    {"log.js", "text/javascript; charset=utf-8",
     log_js, sizeof log_js},
    {"notices.js", "text/javascript; charset=utf-8",
     notices_js, sizeof notices_js},
    {"observable.js", "text/javascript; charset=utf-8",
     observable_js, sizeof observable_js},
    {"operations-table.js", "text/javascript; charset=utf-8",
     operations_table_js, sizeof operations_table_js},
    {"pace.js", "text/javascript; charset=utf-8",
     pace_js, sizeof pace_js},
    {"page.css", "text/css; charset=utf-8",
     page_css, sizeof page_css},
    {"page.js", "text/javascript; charset=utf-8",
     page_js, sizeof page_js},
    {"payload.js", "text/javascript; charset=utf-8",
     payload_js, sizeof payload_js},
    {"picture-drawing.js", "text/javascript; charset=utf-8",
     picture_drawing_js, sizeof picture_drawing_js},
    {"preact.js", "text/javascript; charset=utf-8",
     preact_js, sizeof preact_js},
    {"resource.js", "text/javascript; charset=utf-8",
     resource_js, sizeof resource_js},
    {"routes.js", "text/javascript; charset=utf-8",
     routes_js, sizeof routes_js},
    {"session.js", "text/javascript; charset=utf-8",
     session_js, sizeof session_js},
    {"shortcuts.js", "text/javascript; charset=utf-8",
     shortcuts_js, sizeof shortcuts_js},
    {"timeline-canvas.js", "text/javascript; charset=utf-8",
     timeline_canvas_js, sizeof timeline_canvas_js},
    {"timeline-drawing.js", "text/javascript; charset=utf-8",
     timeline_drawing_js, sizeof timeline_drawing_js},
    {"timeline-scale.js", "text/javascript; charset=utf-8",
     timeline_scale_js, sizeof timeline_scale_js},
    {"ui.js", "text/javascript; charset=utf-8",
     ui_js, sizeof ui_js},
    {"view-cluster.js", "text/javascript; charset=utf-8",
     view_cluster_js, sizeof view_cluster_js},
    {"view-graph.js", "text/javascript; charset=utf-8",
     view_graph_js, sizeof view_graph_js},
    {"view-graphs.js", "text/javascript; charset=utf-8",
     view_graphs_js, sizeof view_graphs_js},
    {"view-operation.js", "text/javascript; charset=utf-8",
     view_operation_js, sizeof view_operation_js},
    {"view-picture.js", "text/javascript; charset=utf-8",
     view_picture_js, sizeof view_picture_js},
    {"view-queues.js", "text/javascript; charset=utf-8",
     view_queues_js, sizeof view_queues_js},
    {"view-timeline.js", "text/javascript; charset=utf-8",
     view_timeline_js, sizeof view_timeline_js},
    {"view-triggers.js", "text/javascript; charset=utf-8",
     view_triggers_js, sizeof view_triggers_js},
    {"view-workers.js", "text/javascript; charset=utf-8",
     view_workers_js, sizeof view_workers_js},
};

const struct operon_page_file *operon_page_files(size_t *count) {
    *count = sizeof files / sizeof files[0];
    return files;
}
