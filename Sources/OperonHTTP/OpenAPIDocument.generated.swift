// Written by scripts/generate-openapi: a change here is lost with its next run.

/// The OpenAPI document, in the program, so that an installed program has it.
enum OpenAPIDocument {
    static let text = ##"""
{
 "openapi": "3.1.0",
 "info": {
  "title": "Operon",
  "version": "1",
  "summary": "Operation queues for a cluster.",
  "description": "What clients ask of a coordinator. A name in a path is percent-encoded as a whole, its slashes too: `count/a` is `count%2Fa`. Answers may get further fields within this version; programs should pass over what they do not know. Bodies of requests are read strictly: a field that is not known is an error that names it.",
  "license": {
   "name": "Apache-2.0",
   "identifier": "Apache-2.0"
  }
 },
 "servers": [
  {
   "url": "/",
   "description": "The coordinator that serves this document."
  }
 ],
 "tags": [
  {
   "name": "graphs"
  },
  {
   "name": "operations"
  },
  {
   "name": "queues"
  },
  {
   "name": "keys"
  },
  {
   "name": "cluster"
  },
  {
   "name": "health"
  }
 ],
 "paths": {
  "/v1/graphs": {
   "get": {
    "operationId": "listGraphs",
    "summary": "List graphs, the newest first",
    "tags": [
     "graphs"
    ],
    "parameters": [
     {
      "name": "status",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "running",
        "suspended",
        "cancelling",
        "idle",
        "finished"
       ]
      }
     },
     {
      "name": "name",
      "in": "query",
      "schema": {
       "type": "string",
       "description": "Only of this name."
      }
     },
     {
      "name": "after",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 0,
       "description": "The `next` of the page before.",
       "maximum": 4294967295
      }
     },
     {
      "name": "limit",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 1,
       "description": "Entries of the page.",
       "maximum": 10000
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/GraphPage"
        },
        "example": {
         "graphs": [
          {
           "id": 1,
           "name": "wordcount",
           "status": "running",
           "isOpen": false,
           "submittedAt": "2026-01-01T00:00:00Z",
           "counts": {
            "pending": 3,
            "ready": 1,
            "dispatched": 0,
            "executing": 0,
            "succeeded": 0,
            "failed": 0,
            "cancelled": 0,
            "skipped": 0
           }
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "post": {
    "operationId": "submitGraph",
    "summary": "Submit a graph",
    "tags": [
     "graphs"
    ],
    "parameters": [
     {
      "name": "open",
      "in": "query",
      "schema": {
       "type": "boolean",
       "description": "Operations may be added later.",
       "default": false
      }
     },
     {
      "name": "name",
      "in": "query",
      "schema": {
       "type": "string",
       "description": "The name of the graph, if the body gives none."
      }
     },
     {
      "name": "Idempotency-Key",
      "in": "header",
      "schema": {
       "type": "string",
       "description": "The same key with the same graph gives the same answer; with another graph, 409. Of additions to a graph the last thousand keys are remembered.",
       "minLength": 1,
       "maxLength": 256,
       "pattern": "^[!-~]+$"
      }
     },
     {
      "name": "traceparent",
      "in": "header",
      "schema": {
       "type": "string",
       "description": "W3C trace context, which operations inherit.",
       "minLength": 1,
       "maxLength": 256,
       "pattern": "^[!-~]+$"
      }
     }
    ],
    "requestBody": {
     "required": true,
     "description": "A graph file, up to 256 MiB; see docs/GRAPH_FILE.md. Large graphs: JSON Lines.",
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/GraphFile"
       },
       "example": {
        "name": "wordcount",
        "operations": {
         "split": {
          "run": "split -n l/4 book.txt part."
         },
         "count": {
          "run": "wc -w part.*",
          "dependencies": [
           "split"
          ]
         }
        }
       }
      },
      "application/jsonl": {
       "schema": {
        "type": "string"
       },
       "example": "{\"name\": \"split\", \"run\": \"split -n l/4 book.txt part.\"}\n{\"name\": \"count\", \"run\": \"wc -w part.*\", \"dependencies\": [\"split\"]}"
      },
      "application/yaml": {
       "schema": {
        "type": "string"
       },
       "example": "name: wordcount\noperations:\n  split:\n    run: split -n l/4 book.txt part.\n  count:\n    run: wc -w part.*\n    dependencies: [split]\n"
      }
     }
    },
    "responses": {
     "201": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Graph"
        },
        "example": {
         "id": 1,
         "name": "wordcount",
         "status": "running",
         "isOpen": false,
         "submittedAt": "2026-01-01T00:00:00Z",
         "counts": {
          "pending": 3,
          "ready": 1,
          "dispatched": 0,
          "executing": 0,
          "succeeded": 0,
          "failed": 0,
          "cancelled": 0,
          "skipped": 0
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   }
  },
  "/v1/graphs/{graph}": {
   "get": {
    "operationId": "getGraph",
    "summary": "Show a graph",
    "tags": [
     "graphs"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Graph"
        },
        "example": {
         "id": 1,
         "name": "wordcount",
         "status": "running",
         "isOpen": false,
         "submittedAt": "2026-01-01T00:00:00Z",
         "counts": {
          "pending": 3,
          "ready": 1,
          "dispatched": 0,
          "executing": 0,
          "succeeded": 0,
          "failed": 0,
          "cancelled": 0,
          "skipped": 0
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/close": {
   "post": {
    "operationId": "closeGraph",
    "summary": "Let nothing more be added",
    "tags": [
     "graphs"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Graph"
        },
        "example": {
         "id": 1,
         "name": "wordcount",
         "status": "running",
         "isOpen": false,
         "submittedAt": "2026-01-01T00:00:00Z",
         "counts": {
          "pending": 3,
          "ready": 1,
          "dispatched": 0,
          "executing": 0,
          "succeeded": 0,
          "failed": 0,
          "cancelled": 0,
          "skipped": 0
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/cancel": {
   "post": {
    "operationId": "cancelGraph",
    "summary": "Cancel a graph",
    "tags": [
     "graphs"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/CancelRequest"
       },
       "example": {
        "reason": "wrong book",
        "cascade": true
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/suspend": {
   "post": {
    "operationId": "suspendGraph",
    "summary": "Start nothing of a graph",
    "tags": [
     "graphs"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/SuspendRequest"
       },
       "example": {
        "reason": "maintenance",
        "until": "2026-01-01T06:00:00Z"
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/resume": {
   "post": {
    "operationId": "resumeGraph",
    "summary": "Let a graph go on",
    "tags": [
     "graphs"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/retry": {
   "post": {
    "operationId": "retryGraph",
    "summary": "Run what failed again",
    "tags": [
     "graphs"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/RetryRequest"
       },
       "example": {
        "operations": [
         "split"
        ]
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/operations": {
   "get": {
    "operationId": "listOperations",
    "summary": "List the operations of a graph",
    "tags": [
     "operations"
    ],
    "parameters": [
     {
      "name": "state",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "pending",
        "ready",
        "dispatched",
        "executing",
        "finished"
       ]
      }
     },
     {
      "name": "outcome",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "succeeded",
        "failed",
        "cancelled",
        "skipped"
       ]
      }
     },
     {
      "name": "queue",
      "in": "query",
      "schema": {
       "type": "string"
      }
     },
     {
      "name": "after",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 0,
       "description": "The `next` of the page before.",
       "maximum": 4294967295
      }
     },
     {
      "name": "limit",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 1,
       "description": "Entries of the page.",
       "maximum": 10000
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/OperationPage"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "post": {
    "operationId": "addOperations",
    "summary": "Add operations to an open graph",
    "tags": [
     "operations"
    ],
    "parameters": [
     {
      "name": "Idempotency-Key",
      "in": "header",
      "schema": {
       "type": "string",
       "description": "The same key with the same graph gives the same answer; with another graph, 409. Of additions to a graph the last thousand keys are remembered.",
       "minLength": 1,
       "maxLength": 256,
       "pattern": "^[!-~]+$"
      }
     },
     {
      "name": "traceparent",
      "in": "header",
      "schema": {
       "type": "string",
       "description": "W3C trace context, which operations inherit.",
       "minLength": 1,
       "maxLength": 256,
       "pattern": "^[!-~]+$"
      }
     }
    ],
    "requestBody": {
     "required": true,
     "description": "A graph file, up to 256 MiB; see docs/GRAPH_FILE.md. Large graphs: JSON Lines.",
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/GraphFile"
       },
       "example": {
        "name": "wordcount",
        "operations": {
         "split": {
          "run": "split -n l/4 book.txt part."
         },
         "count": {
          "run": "wc -w part.*",
          "dependencies": [
           "split"
          ]
         }
        }
       }
      },
      "application/jsonl": {
       "schema": {
        "type": "string"
       },
       "example": "{\"name\": \"split\", \"run\": \"split -n l/4 book.txt part.\"}\n{\"name\": \"count\", \"run\": \"wc -w part.*\", \"dependencies\": [\"split\"]}"
      },
      "application/yaml": {
       "schema": {
        "type": "string"
       },
       "example": "name: wordcount\noperations:\n  split:\n    run: split -n l/4 book.txt part.\n  count:\n    run: wc -w part.*\n    dependencies: [split]\n"
      }
     }
    },
    "responses": {
     "201": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Graph"
        },
        "example": {
         "id": 1,
         "name": "wordcount",
         "status": "running",
         "isOpen": false,
         "submittedAt": "2026-01-01T00:00:00Z",
         "counts": {
          "pending": 3,
          "ready": 1,
          "dispatched": 0,
          "executing": 0,
          "succeeded": 0,
          "failed": 0,
          "cancelled": 0,
          "skipped": 0
         }
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}": {
   "get": {
    "operationId": "getOperation",
    "summary": "Show an operation",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/OperationDetail"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/explain": {
   "get": {
    "operationId": "explainOperation",
    "summary": "Why an operation does not run",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Explanation"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/input": {
   "get": {
    "operationId": "getInput",
    "summary": "The input of an operation",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "*/*": {}
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     },
     "204": {
      "description": "It has none of its own."
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/output": {
   "get": {
    "operationId": "getOutput",
    "summary": "The output of an operation",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "*/*": {}
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     },
     "204": {
      "description": "It left none."
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/log": {
   "get": {
    "operationId": "getLog",
    "summary": "What an operation printed",
    "tags": [
     "operations"
    ],
    "parameters": [
     {
      "name": "follow",
      "in": "query",
      "schema": {
       "type": "boolean",
       "description": "A stream of what is printed from now on."
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Logs"
        }
       },
       "text/plain; charset=utf-8": {
        "schema": {
         "type": "string",
         "description": "With `Accept: text/plain`: of the last attempt, without control characters."
        }
       },
       "text/event-stream": {
        "schema": {
         "type": "object",
         "description": "With `follow=true`: an event `log` for each piece, `end` at last.",
         "properties": {
          "event": {
           "type": "string"
          },
          "data": {
           "type": "string",
           "description": "An object in JSON."
          },
          "id": {
           "type": "string",
           "description": "What to come back with."
          }
         },
         "required": [
          "event",
          "data"
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/cancel": {
   "post": {
    "operationId": "cancelOperation",
    "summary": "Cancel an operation",
    "tags": [
     "operations"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/CancelRequest"
       },
       "example": {
        "reason": "wrong book",
        "cascade": true
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/complete": {
   "post": {
    "operationId": "completeOperation",
    "summary": "Complete an operation that runs nowhere",
    "tags": [
     "operations"
    ],
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/CompleteRequest"
       },
       "example": {
        "outcome": "succeeded",
        "output": {
         "approved": true
        },
        "attempt": "1.17"
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Operation"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/suspend": {
   "post": {
    "operationId": "suspendOperation",
    "summary": "Do not start an operation",
    "tags": [
     "operations"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/SuspendRequest"
       },
       "example": {
        "reason": "maintenance",
        "until": "2026-01-01T06:00:00Z"
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/resume": {
   "post": {
    "operationId": "resumeOperation",
    "summary": "Let an operation start",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/priority": {
   "put": {
    "operationId": "setPriority",
    "summary": "Change the priority of an operation",
    "tags": [
     "operations"
    ],
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/PriorityRequest"
       },
       "example": {
        "priority": "high"
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Operation"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    }
   ]
  },
  "/v1/graphs/{graph}/operations/{operation}/dependencies/{dependencyGraph}/{dependency}": {
   "put": {
    "operationId": "addDependency",
    "summary": "Let an operation wait for another",
    "tags": [
     "operations"
    ],
    "parameters": [
     {
      "name": "condition",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "unlessFailed",
        "finished",
        "succeeded",
        "failed"
       ],
       "description": "By which outcomes it releases; `unlessFailed` by default."
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/OperationDetail"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "delete": {
    "operationId": "removeDependency",
    "summary": "Let an operation not wait for another",
    "tags": [
     "operations"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/OperationDetail"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/graph"
    },
    {
     "$ref": "#/components/parameters/operation"
    },
    {
     "$ref": "#/components/parameters/dependencyGraph"
    },
    {
     "$ref": "#/components/parameters/dependency"
    }
   ]
  },
  "/v1/queues": {
   "get": {
    "operationId": "listQueues",
    "summary": "List the queues",
    "tags": [
     "queues"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Queues"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/v1/queues/{queue}": {
   "get": {
    "operationId": "getQueue",
    "summary": "Show a queue",
    "tags": [
     "queues"
    ],
    "parameters": [
     {
      "name": "wait",
      "in": "query",
      "schema": {
       "type": "number",
       "minimum": 0,
       "maximum": 3600,
       "description": "Seconds to wait until nothing in it is unfinished. The answer says whether it is so."
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Queue"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "patch": {
    "operationId": "setQueue",
    "summary": "Change a queue, or make it",
    "tags": [
     "queues"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/QueueChange"
       },
       "example": {
        "maxConcurrentOperationCount": 8
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Queue"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/queues/{queue}/operations": {
   "get": {
    "operationId": "listQueueOperations",
    "summary": "List the operations of a queue",
    "tags": [
     "queues"
    ],
    "parameters": [
     {
      "name": "state",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "pending",
        "ready",
        "dispatched",
        "executing",
        "finished"
       ],
       "description": "Neither this nor an outcome: those that are not finished."
      }
     },
     {
      "name": "outcome",
      "in": "query",
      "schema": {
       "type": "string",
       "enum": [
        "succeeded",
        "failed",
        "cancelled",
        "skipped"
       ]
      }
     },
     {
      "name": "after",
      "in": "query",
      "schema": {
       "type": "string",
       "description": "The `next` of the page before.",
       "pattern": "^[0-9]+/[0-9]+$"
      }
     },
     {
      "name": "limit",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 1,
       "description": "Entries of the page.",
       "maximum": 10000
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/QueuePage"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/queues/{queue}/reset": {
   "post": {
    "operationId": "resetQueue",
    "summary": "Remove the settings of a queue",
    "tags": [
     "queues"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Queue"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/queues/{queue}/suspend": {
   "post": {
    "operationId": "suspendQueue",
    "summary": "Start nothing of a queue",
    "tags": [
     "queues"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/SuspendRequest"
       },
       "example": {
        "reason": "maintenance",
        "until": "2026-01-01T06:00:00Z"
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/queues/{queue}/resume": {
   "post": {
    "operationId": "resumeQueue",
    "summary": "Let a queue go on",
    "tags": [
     "queues"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/queues/{queue}/cancel": {
   "post": {
    "operationId": "cancelQueue",
    "summary": "Cancel what is in a queue",
    "tags": [
     "queues"
    ],
    "requestBody": {
     "required": false,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/CancelRequest"
       },
       "example": {
        "reason": "wrong book",
        "cascade": true
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Command"
        },
        "example": {
         "affected": 4,
         "finished": 3,
         "running": 1,
         "released": 0,
         "isEffective": true,
         "named": [
          {
           "graph": 1,
           "index": 0,
           "name": "split"
          }
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/queue"
    }
   ]
  },
  "/v1/keys": {
   "get": {
    "operationId": "listKeys",
    "summary": "List the keys: who holds them, how many wait",
    "tags": [
     "keys"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Keys"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/v1/keys/{key}": {
   "get": {
    "operationId": "getKey",
    "summary": "Show a key",
    "tags": [
     "keys"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Key"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   },
   "put": {
    "operationId": "setKey",
    "summary": "Set how many may hold a key, or make it",
    "tags": [
     "keys"
    ],
    "requestBody": {
     "required": true,
     "content": {
      "application/json": {
       "schema": {
        "$ref": "#/components/schemas/KeyRequest"
       },
       "example": {
        "limit": 3
       }
      }
     }
    },
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Key"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "408": {
      "$ref": "#/components/responses/408"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "413": {
      "$ref": "#/components/responses/413"
     },
     "415": {
      "$ref": "#/components/responses/415"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/key"
    }
   ]
  },
  "/v1/keys/{key}/reset": {
   "post": {
    "operationId": "resetKey",
    "summary": "Remove the limit of a key",
    "tags": [
     "keys"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Key"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/key"
    }
   ]
  },
  "/v1/workers": {
   "get": {
    "operationId": "listWorkers",
    "summary": "List the workers",
    "tags": [
     "cluster"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Workers"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/v1/workers/{worker}/drain": {
   "post": {
    "operationId": "drainWorker",
    "summary": "Give a worker nothing more",
    "tags": [
     "cluster"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Worker"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "409": {
      "$ref": "#/components/responses/409"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   },
   "parameters": [
    {
     "$ref": "#/components/parameters/worker"
    }
   ]
  },
  "/v1/status": {
   "get": {
    "operationId": "getStatus",
    "summary": "How the cluster is",
    "tags": [
     "cluster"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "$ref": "#/components/schemas/Cluster"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/v1/backup": {
   "post": {
    "operationId": "backup",
    "summary": "A copy of the coordinator's store, while it goes on",
    "tags": [
     "cluster"
    ],
    "responses": {
     "200": {
      "description": "Done.",
      "content": {
       "application/vnd.sqlite3": {}
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "operate"
   }
  },
  "/v1/events": {
   "get": {
    "operationId": "events",
    "summary": "What happens, as it happens",
    "tags": [
     "cluster"
    ],
    "parameters": [
     {
      "name": "after",
      "in": "query",
      "schema": {
       "type": "integer",
       "minimum": 0,
       "description": "Events from after this number.",
       "maximum": 9223372036854775807
      }
     },
     {
      "name": "graph",
      "in": "query",
      "schema": {
       "type": "string",
       "description": "Only of this graph.",
       "minLength": 1
      }
     },
     {
      "name": "Last-Event-ID",
      "in": "header",
      "schema": {
       "type": "string",
       "description": "The number of the last event that was seen; over `after`. Empty: none was.",
       "pattern": "^[0-9]{0,19}$"
      }
     }
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "text/event-stream": {
        "schema": {
         "type": "object",
         "description": "Server-sent events: `id` is the number, `event` the kind, `data` an Event; `gap` tells of numbers that are not kept any more, `problem` is an error and the last.",
         "properties": {
          "event": {
           "type": "string"
          },
          "data": {
           "type": "string",
           "description": "An object in JSON."
          },
          "id": {
           "type": "string",
           "description": "What to come back with."
          }
         },
         "required": [
          "event",
          "data"
         ]
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/v1/openapi.json": {
   "get": {
    "operationId": "getDocument",
    "summary": "This document",
    "tags": [
     "cluster"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "application/json": {
        "schema": {
         "type": "object"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  },
  "/healthz": {
   "get": {
    "operationId": "healthz",
    "summary": "Whether the coordinator does its work",
    "tags": [
     "health"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "text/plain": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "description": "It does not.",
      "content": {
       "text/plain": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "open"
   }
  },
  "/readyz": {
   "get": {
    "operationId": "readyz",
    "summary": "Whether the coordinator takes commands",
    "tags": [
     "health"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "text/plain": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "description": "It does not.",
      "content": {
       "text/plain": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "open"
   }
  },
  "/metrics": {
   "get": {
    "operationId": "metrics",
    "summary": "Metrics in Prometheus' text format",
    "tags": [
     "health"
    ],
    "responses": {
     "200": {
      "description": "Here it is.",
      "content": {
       "text/plain": {
        "schema": {
         "type": "string"
        }
       }
      }
     },
     "400": {
      "$ref": "#/components/responses/400"
     },
     "401": {
      "$ref": "#/components/responses/401"
     },
     "403": {
      "$ref": "#/components/responses/403"
     },
     "404": {
      "$ref": "#/components/responses/404"
     },
     "405": {
      "$ref": "#/components/responses/405"
     },
     "500": {
      "$ref": "#/components/responses/500"
     },
     "502": {
      "$ref": "#/components/responses/502"
     },
     "503": {
      "$ref": "#/components/responses/503"
     },
     "504": {
      "$ref": "#/components/responses/504"
     }
    },
    "security": [
     {},
     {
      "token": []
     }
    ],
    "x-operon-scope": "read"
   }
  }
 },
 "components": {
  "schemas": {
   "Problem": {
    "type": "object",
    "description": "An error (RFC 9457).",
    "properties": {
     "type": {
      "type": "string",
      "description": "`urn:operon:problem:` and the code."
     },
     "title": {
      "type": "string",
      "description": "The status in words."
     },
     "status": {
      "type": "integer",
      "minimum": 0
     },
     "detail": {
      "type": "string",
      "description": "A sentence that says what to do."
     },
     "code": {
      "type": "string",
      "enum": [
       "invalid",
       "notFound",
       "conflict",
       "tooLarge",
       "unauthorized",
       "forbidden",
       "unavailable",
       "unreachable",
       "timedOut",
       "internal"
      ],
      "description": "Stable."
     },
     "refusal": {
      "$ref": "#/components/schemas/Refusal"
     }
    },
    "required": [
     "type",
     "title",
     "status",
     "detail",
     "code"
    ]
   },
   "Refusal": {
    "type": "object",
    "description": "Why a call was refused; nothing of a refused call has any effect.",
    "properties": {
     "kind": {
      "type": "string",
      "enum": [
       "dependencyCycle",
       "unknownOperation",
       "duplicateOperation",
       "alreadySubmitted",
       "alreadyStarted",
       "alreadyFinished",
       "graphClosed",
       "invalid",
       "limitExceeded",
       "unreachable"
      ]
     },
     "path": {
      "type": "array",
      "items": {
       "type": "string"
      },
      "description": "The operations of a cycle, the first repeated at the end."
     },
     "name": {
      "type": "string",
      "description": "The operation or graph."
     },
     "namedBy": {
      "type": "string",
      "description": "Who depends on it."
     },
     "field": {
      "type": "string",
      "description": "What is wrong."
     },
     "why": {
      "type": "string",
      "description": "And why."
     },
     "limit": {
      "type": "string",
      "enum": [
       "operationsPerGraph",
       "edgesPerGraph",
       "graphFileBytes",
       "yamlOperations",
       "yamlDepth",
       "yamlAliasExpansion",
       "nameBytes",
       "payloadBytes",
       "inputsBytes",
       "inlineInputBytes",
       "chunkBytes",
       "chunksAhead",
       "cachedBytes",
       "logBytes",
       "messageBytes",
       "outgoingBytes",
       "dispatchedBytes",
       "retainedBytes",
       "eventBytesPerWorker",
       "eventBytes",
       "yieldedOperations",
       "additionBytes",
       "additionOperations",
       "inputListBytes",
       "openRequests",
       "slots",
       "queues",
       "keys"
      ]
     },
     "value": {
      "type": "integer"
     },
     "maximum": {
      "type": "integer"
     }
    },
    "required": [
     "kind"
    ]
   },
   "StateCounts": {
    "type": "object",
    "description": "Operations by state, finished ones by outcome.",
    "properties": {
     "pending": {
      "type": "integer",
      "minimum": 0
     },
     "ready": {
      "type": "integer",
      "minimum": 0
     },
     "dispatched": {
      "type": "integer",
      "minimum": 0
     },
     "executing": {
      "type": "integer",
      "minimum": 0
     },
     "succeeded": {
      "type": "integer",
      "minimum": 0
     },
     "failed": {
      "type": "integer",
      "minimum": 0
     },
     "cancelled": {
      "type": "integer",
      "minimum": 0
     },
     "skipped": {
      "type": "integer",
      "minimum": 0
     }
    },
    "required": [
     "pending",
     "ready",
     "dispatched",
     "executing",
     "succeeded",
     "failed",
     "cancelled",
     "skipped"
    ]
   },
   "Suspension": {
    "type": "object",
    "description": "Who suspended something.",
    "properties": {
     "by": {
      "type": "string",
      "description": "The name of a token."
     },
     "reason": {
      "type": "string"
     },
     "until": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     }
    }
   },
   "Graph": {
    "type": "object",
    "description": "Operations that were submitted together.",
    "properties": {
     "id": {
      "type": "integer",
      "minimum": 0,
      "description": "Its number.",
      "maximum": 4294967295
     },
     "name": {
      "type": "string"
     },
     "status": {
      "type": "string",
      "enum": [
       "running",
       "suspended",
       "cancelling",
       "idle",
       "finished"
      ]
     },
     "isOpen": {
      "type": "boolean",
      "description": "Operations may be added."
     },
     "submittedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "counts": {
      "$ref": "#/components/schemas/StateCounts"
     },
     "suspension": {
      "$ref": "#/components/schemas/Suspension"
     },
     "cancelReason": {
      "type": "string"
     },
     "submittedBy": {
      "type": "string"
     },
     "finishedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "exitCode": {
      "type": "integer",
      "description": "Of a finished graph: 0 all succeeded, 1 one failed, 3 cancelled, 7 skipped."
     },
     "firstAdded": {
      "type": "integer",
      "minimum": 0,
      "description": "After an addition: the number of the first operation of it.",
      "maximum": 4294967295
     }
    },
    "required": [
     "id",
     "name",
     "status",
     "isOpen",
     "submittedAt",
     "counts"
    ]
   },
   "GraphPage": {
    "type": "object",
    "description": "Graphs, the newest first.",
    "properties": {
     "graphs": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Graph"
      }
     },
     "next": {
      "type": "integer",
      "minimum": 0,
      "description": "Give it as `after` for the next page; missing on the last.",
      "maximum": 4294967295
     }
    },
    "required": [
     "graphs"
    ]
   },
   "OperationName": {
    "type": "object",
    "description": "An operation.",
    "properties": {
     "graph": {
      "type": "integer",
      "minimum": 0,
      "maximum": 4294967295
     },
     "index": {
      "type": "integer",
      "minimum": 0,
      "description": "Its place in its graph, from 0.",
      "maximum": 4294967295
     },
     "name": {
      "type": "string"
     }
    },
    "required": [
     "graph",
     "index",
     "name"
    ]
   },
   "OperationError": {
    "type": "object",
    "description": "Why an operation failed.",
    "properties": {
     "code": {
      "type": "string",
      "description": "Stable."
     },
     "message": {
      "type": "string",
      "description": "For a person."
     },
     "type": {
      "type": "string",
      "description": "Of a thrown error: its type."
     },
     "payload": {
      "type": "string",
      "description": "Of a thrown error: its encoded value, if that is text, as JSON is."
     },
     "payloadBase64": {
      "type": "string",
      "description": "The same, if it is not text."
     },
     "detail": {
      "type": "string",
      "description": "What it names: a kind, a signal, a version, a condition, a reason; of a thrown error its message, where `message` stands for it."
     },
     "exitCode": {
      "type": "integer",
      "description": "Of a process."
     },
     "bytes": {
      "type": "integer",
      "minimum": 0,
      "description": "Of what was too large."
     },
     "limit": {
      "type": "integer",
      "minimum": 0,
      "description": "What it may have had."
     }
    },
    "required": [
     "code",
     "message"
    ]
   },
   "Operation": {
    "type": "object",
    "description": "One operation.",
    "properties": {
     "graph": {
      "type": "integer",
      "minimum": 0,
      "maximum": 4294967295
     },
     "index": {
      "type": "integer",
      "minimum": 0,
      "maximum": 4294967295
     },
     "name": {
      "type": "string"
     },
     "kind": {
      "type": "string"
     },
     "queue": {
      "type": "string"
     },
     "priority": {
      "type": "string",
      "enum": [
       "veryLow",
       "low",
       "normal",
       "high",
       "veryHigh"
      ]
     },
     "state": {
      "type": "string",
      "enum": [
       "pending",
       "ready",
       "dispatched",
       "executing",
       "finished"
      ]
     },
     "isCancelRequested": {
      "type": "boolean",
      "description": "It was asked to stop."
     },
     "attempts": {
      "type": "integer",
      "minimum": 0,
      "description": "Attempts so far."
     },
     "round": {
      "type": "integer",
      "minimum": 0,
      "description": "Times it was retried by command."
     },
     "outcome": {
      "type": "string",
      "enum": [
       "succeeded",
       "failed",
       "cancelled",
       "skipped"
      ]
     },
     "error": {
      "$ref": "#/components/schemas/OperationError"
     },
     "reason": {
      "type": "string",
      "description": "Why it was cancelled."
     },
     "skippedFor": {
      "$ref": "#/components/schemas/OperationName"
     },
     "finishedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "progress": {
      "$ref": "#/components/schemas/Progress"
     }
    },
    "required": [
     "graph",
     "index",
     "name",
     "kind",
     "queue",
     "priority",
     "state",
     "isCancelRequested",
     "attempts",
     "round"
    ]
   },
   "Progress": {
    "type": "object",
    "description": "How far an operation that runs says it is.",
    "properties": {
     "fraction": {
      "type": "number",
      "minimum": 0,
      "maximum": 1
     },
     "text": {
      "type": "string"
     }
    },
    "required": [
     "fraction"
    ]
   },
   "OperationPage": {
    "type": "object",
    "description": "Operations in their order.",
    "properties": {
     "operations": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Operation"
      }
     },
     "next": {
      "type": "integer",
      "minimum": 0,
      "description": "Give it as `after` for the next page; missing on the last.",
      "maximum": 4294967295
     }
    },
    "required": [
     "operations"
    ]
   },
   "Attempt": {
    "type": "object",
    "description": "One try at an operation.",
    "properties": {
     "id": {
      "type": "string"
     },
     "number": {
      "type": "integer",
      "minimum": 0
     },
     "worker": {
      "type": "string",
      "description": "Empty: no worker has it, as somebody outside is to complete it."
     },
     "grantedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "startedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "endedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "error": {
      "$ref": "#/components/schemas/OperationError"
     },
     "ending": {
      "type": "string",
      "enum": [
       "succeeded",
       "failed",
       "cancelled",
       "returned",
       "lost",
       "crashed"
      ]
     }
    },
    "required": [
     "id",
     "number",
     "worker",
     "grantedAt"
    ]
   },
   "Dependency": {
    "type": "object",
    "description": "What an operation waits for.",
    "properties": {
     "operation": {
      "$ref": "#/components/schemas/OperationName"
     },
     "condition": {
      "type": "string",
      "enum": [
       "unlessFailed",
       "finished",
       "succeeded",
       "failed"
      ]
     },
     "state": {
      "type": "string",
      "enum": [
       "pending",
       "ready",
       "dispatched",
       "executing",
       "finished"
      ]
     },
     "outcome": {
      "type": "string",
      "enum": [
       "succeeded",
       "failed",
       "cancelled",
       "skipped"
      ]
     }
    },
    "required": [
     "operation",
     "condition",
     "state"
    ]
   },
   "Reason": {
    "type": "object",
    "description": "One reason why an operation does not run.",
    "properties": {
     "code": {
      "type": "string",
      "description": "Stable."
     },
     "text": {
      "type": "string",
      "description": "A sentence."
     },
     "operations": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/OperationName"
      },
      "description": "Those it waits for."
     },
     "more": {
      "type": "integer",
      "minimum": 0,
      "description": "Operations beyond those listed."
     },
     "until": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     }
    },
    "required": [
     "code",
     "text",
     "operations",
     "more"
    ]
   },
   "OperationDetail": {
    "type": "object",
    "description": "One operation, whole.",
    "properties": {
     "operation": {
      "$ref": "#/components/schemas/Operation"
     },
     "graphName": {
      "type": "string"
     },
     "dependencies": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Dependency"
      }
     },
     "dependents": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/OperationName"
      }
     },
     "moreDependents": {
      "type": "integer",
      "minimum": 0
     },
     "attempts": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Attempt"
      }
     },
     "reasons": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Reason"
      }
     },
     "summary": {
      "type": "string"
     },
     "qualityOfService": {
      "type": "string",
      "description": "If it is not `default`."
     },
     "timeout": {
      "type": "number",
      "description": "Seconds that one attempt may take."
     }
    },
    "required": [
     "operation",
     "graphName",
     "dependencies",
     "dependents",
     "moreDependents",
     "attempts",
     "reasons"
    ]
   },
   "Explanation": {
    "type": "object",
    "description": "Why an operation does not run.",
    "properties": {
     "operation": {
      "$ref": "#/components/schemas/Operation"
     },
     "reasons": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Reason"
      }
     },
     "chain": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Operation"
      },
      "description": "From what skipped it, or from the first that it waits for, to the root."
     },
     "leftOut": {
      "type": "integer",
      "minimum": 0,
      "description": "Operations of the chain that are missing before its last."
     },
     "rootReasons": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Reason"
      },
      "description": "Why the last of the chain does not run."
     }
    },
    "required": [
     "operation",
     "reasons",
     "chain"
    ]
   },
   "Log": {
    "type": "object",
    "description": "What an attempt printed.",
    "properties": {
     "operation": {
      "$ref": "#/components/schemas/OperationName"
     },
     "attempt": {
      "type": "string"
     },
     "text": {
      "type": "string",
      "description": "What is no UTF-8 is replaced."
     },
     "isTail": {
      "type": "boolean",
      "description": "Something before it may be missing."
     },
     "missedBytes": {
      "type": "integer",
      "minimum": 0,
      "description": "Bytes directly before it that were not read in time by whoever follows."
     }
    },
    "required": [
     "operation",
     "attempt",
     "text",
     "isTail"
    ]
   },
   "Logs": {
    "type": "object",
    "description": "What the attempts printed.",
    "properties": {
     "logs": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Log"
      },
      "description": "The last attempt last."
     }
    },
    "required": [
     "logs"
    ]
   },
   "Command": {
    "type": "object",
    "description": "What a command did.",
    "properties": {
     "affected": {
      "type": "integer",
      "minimum": 0,
      "description": "Operations it acted on."
     },
     "finished": {
      "type": "integer",
      "minimum": 0,
      "description": "That ended at once."
     },
     "running": {
      "type": "integer",
      "minimum": 0,
      "description": "That run, and were asked to stop or run on."
     },
     "released": {
      "type": "integer",
      "minimum": 0,
      "description": "Dependents that it released."
     },
     "isEffective": {
      "type": "boolean",
      "description": "No start is possible any more."
     },
     "named": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/OperationName"
      },
      "description": "A few."
     }
    },
    "required": [
     "affected",
     "finished",
     "running",
     "released",
     "isEffective",
     "named"
    ]
   },
   "Queue": {
    "type": "object",
    "description": "An operation queue.",
    "properties": {
     "name": {
      "type": "string"
     },
     "priority": {
      "type": "string",
      "enum": [
       "veryLow",
       "low",
       "normal",
       "high",
       "veryHigh"
      ]
     },
     "isSuspended": {
      "type": "boolean",
      "description": "It starts nothing."
     },
     "ready": {
      "type": "integer",
      "minimum": 0
     },
     "inFlight": {
      "type": "integer",
      "minimum": 0,
      "description": "Dispatched or executing."
     },
     "unfinished": {
      "type": "integer",
      "minimum": 0,
      "description": "Whatever has no outcome yet, of all graphs."
     },
     "maxConcurrentOperationCount": {
      "type": "integer",
      "minimum": 0,
      "description": "In the whole cluster; missing: unlimited."
     },
     "suspension": {
      "$ref": "#/components/schemas/Suspension"
     }
    },
    "required": [
     "name",
     "priority",
     "isSuspended",
     "ready",
     "inFlight",
     "unfinished"
    ]
   },
   "QueuePage": {
    "type": "object",
    "description": "Operations of a queue, graph by graph.",
    "properties": {
     "operations": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Operation"
      }
     },
     "next": {
      "type": "string",
      "description": "Give it as `after` for the next page; missing on the last."
     }
    },
    "required": [
     "operations"
    ]
   },
   "Queues": {
    "type": "object",
    "description": "All queues.",
    "properties": {
     "queues": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Queue"
      }
     }
    },
    "required": [
     "queues"
    ]
   },
   "Key": {
    "type": "object",
    "description": "A name that operations hold while they run.",
    "properties": {
     "name": {
      "type": "string"
     },
     "limit": {
      "type": "integer",
      "minimum": 1,
      "description": "How many may hold it at a time."
     },
     "held": {
      "type": "integer",
      "minimum": 0,
      "description": "How many do: more, if it was lowered meanwhile."
     },
     "waiting": {
      "type": "integer",
      "minimum": 0,
      "description": "Ready operations that need it."
     },
     "holders": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/OperationName"
      },
      "description": "Those that hold it, at most a hundred."
     }
    },
    "required": [
     "name",
     "limit",
     "held",
     "waiting",
     "holders"
    ]
   },
   "Keys": {
    "type": "object",
    "description": "All keys.",
    "properties": {
     "keys": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Key"
      }
     }
    },
    "required": [
     "keys"
    ]
   },
   "Worker": {
    "type": "object",
    "description": "A worker.",
    "properties": {
     "id": {
      "type": "string"
     },
     "name": {
      "type": "string"
     },
     "host": {
      "type": "string"
     },
     "slots": {
      "type": "integer",
      "minimum": 0
     },
     "busySlots": {
      "type": "integer",
      "minimum": 0
     },
     "held": {
      "type": "integer",
      "minimum": 0,
      "description": "Attempts it holds."
     },
     "status": {
      "type": "string",
      "enum": [
       "alive",
       "draining",
       "gone"
      ]
     },
     "queues": {
      "type": "array",
      "items": {
       "type": "string"
      }
     },
     "kinds": {
      "type": "array",
      "items": {
       "type": "string"
      }
     },
     "heardSecondsAgo": {
      "type": "number"
     },
     "runsAnyKind": {
      "type": "boolean",
      "description": "It runs other kinds as well, whatever comes."
     }
    },
    "required": [
     "id",
     "name",
     "host",
     "slots",
     "busySlots",
     "held",
     "status",
     "queues",
     "kinds",
     "heardSecondsAgo"
    ]
   },
   "Workers": {
    "type": "object",
    "description": "All workers.",
    "properties": {
     "workers": {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/Worker"
      }
     }
    },
    "required": [
     "workers"
    ]
   },
   "Cluster": {
    "type": "object",
    "description": "How the cluster is.",
    "properties": {
     "version": {
      "type": "string"
     },
     "reign": {
      "type": "string",
      "description": "Of the store."
     },
     "epoch": {
      "type": "integer",
      "minimum": 0
     },
     "startedAt": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "now": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "broker": {
      "type": "string",
      "description": "`ok`, or a sentence."
     },
     "store": {
      "type": "string",
      "description": "`ok`, or a sentence."
     },
     "workers": {
      "type": "integer",
      "minimum": 0
     },
     "slots": {
      "type": "integer",
      "minimum": 0
     },
     "busySlots": {
      "type": "integer",
      "minimum": 0
     },
     "openGraphs": {
      "type": "integer",
      "minimum": 0
     },
     "lastEvent": {
      "type": "integer",
      "minimum": 0,
      "description": "The number of the last event so far; 0: there was none."
     },
     "counts": {
      "$ref": "#/components/schemas/StateCounts"
     }
    },
    "required": [
     "version",
     "reign",
     "epoch",
     "startedAt",
     "now",
     "broker",
     "store",
     "workers",
     "slots",
     "busySlots",
     "openGraphs",
     "lastEvent",
     "counts"
    ]
   },
   "Event": {
    "type": "object",
    "description": "One thing that happened.",
    "properties": {
     "sequence": {
      "type": "integer",
      "minimum": 1
     },
     "at": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "kind": {
      "type": "string",
      "description": "`graphSubmitted`, `graphAdded`, `graphClosed`, `graphFinished`, `graphCancelled`, `suspended`, `resumed`, `queueSet`, `keySet`, `priority`, `ready`, `granted`, `started`, `attemptEnded`, `retry`, `finished`, `reopened`, `workerJoined`, `workerLost`, `workerDraining`, `dependencyAdded`, `dependencyRemoved`."
     },
     "graph": {
      "type": "integer",
      "minimum": 0,
      "maximum": 4294967295
     },
     "graphName": {
      "type": "string"
     },
     "operation": {
      "$ref": "#/components/schemas/OperationName"
     },
     "outcome": {
      "type": "string",
      "enum": [
       "succeeded",
       "failed",
       "cancelled",
       "skipped"
      ]
     },
     "attempt": {
      "type": "string"
     },
     "ending": {
      "type": "string"
     },
     "error": {
      "$ref": "#/components/schemas/OperationError"
     },
     "worker": {
      "type": "string"
     },
     "queue": {
      "type": "string"
     },
     "key": {
      "type": "string"
     },
     "by": {
      "type": "string"
     },
     "reason": {
      "type": "string"
     }
    },
    "required": [
     "sequence",
     "at",
     "kind"
    ]
   },
   "CancelRequest": {
    "type": "object",
    "description": "How to cancel.",
    "properties": {
     "reason": {
      "type": "string",
      "description": "Shown with what was cancelled."
     },
     "cascade": {
      "type": "boolean",
      "description": "Dependents as well."
     },
     "wait": {
      "type": "number",
      "minimum": 0,
      "maximum": 3600,
      "description": "Seconds to wait until everything has ended; else 504."
     }
    },
    "additionalProperties": false
   },
   "CompleteRequest": {
    "type": "object",
    "description": "How an operation ended that somebody outside completes.",
    "properties": {
     "outcome": {
      "type": "string",
      "enum": [
       "succeeded",
       "failed",
       "cancelled"
      ]
     },
     "output": {
      "description": "Of a success, for its dependents: any JSON."
     },
     "payload": {
      "type": "object",
      "description": "Of a success, in place of `output`: bytes of any type.",
      "properties": {
       "base64": {
        "type": "string",
        "contentEncoding": "base64"
       },
       "contentType": {
        "type": "string",
        "description": "application/json by default.",
        "minLength": 1,
        "maxLength": 256
       }
      },
      "required": [
       "base64"
      ],
      "additionalProperties": false
     },
     "error": {
      "type": "object",
      "description": "Of a failure: why.",
      "properties": {
       "code": {
        "type": "string",
        "enum": [
         "thrown",
         "exit",
         "signal",
         "timeout",
         "conditionFailed",
         "kindUnknown",
         "versionUnsupported",
         "undecodable",
         "inputTooLarge",
         "outputTooLarge"
        ],
        "description": "`thrown` by default."
       },
       "type": {
        "type": "string",
        "description": "Of what was thrown."
       },
       "message": {
        "type": "string",
        "description": "What was thrown, in words."
       },
       "payload": {
        "type": "string",
        "description": "Of what was thrown, encoded.",
        "contentEncoding": "base64"
       },
       "exitCode": {
        "type": "integer",
        "minimum": -2147483648,
        "maximum": 2147483647
       },
       "name": {
        "type": "string",
        "description": "Of a signal, a condition, a kind, or a version."
       },
       "bytes": {
        "type": "integer"
       },
       "limit": {
        "type": "integer"
       }
      },
      "additionalProperties": false
     },
     "reason": {
      "type": "string",
      "description": "Of a cancellation."
     },
     "attempt": {
      "type": "string",
      "description": "The attempt that is meant; refused if it is another one that is executing.",
      "pattern": "^[0-9]+\\.[0-9]+$"
     }
    },
    "required": [
     "outcome"
    ],
    "additionalProperties": false
   },
   "SuspendRequest": {
    "type": "object",
    "description": "How to suspend.",
    "properties": {
     "reason": {
      "type": "string"
     },
     "until": {
      "type": "string",
      "description": "A moment as RFC 3339 in UTC.",
      "format": "date-time"
     },
     "wait": {
      "type": "number",
      "minimum": 0,
      "maximum": 3600,
      "description": "Seconds to wait until it is effective; else 504."
     }
    },
    "additionalProperties": false
   },
   "RetryRequest": {
    "type": "object",
    "description": "What to run again.",
    "properties": {
     "operations": {
      "type": "array",
      "items": {
       "type": "string"
      },
      "description": "By name; none: every operation that failed."
     },
     "cancelled": {
      "type": "boolean",
      "description": "Those that were cancelled, too."
     }
    },
    "additionalProperties": false
   },
   "PriorityRequest": {
    "type": "object",
    "description": "A priority.",
    "properties": {
     "priority": {
      "type": "string",
      "enum": [
       "veryLow",
       "low",
       "normal",
       "high",
       "veryHigh"
      ]
     }
    },
    "required": [
     "priority"
    ],
    "additionalProperties": false
   },
   "QueueChange": {
    "type": "object",
    "description": "What to change; what is left out stays as it is.",
    "properties": {
     "maxConcurrentOperationCount": {
      "type": "integer",
      "minimum": 0,
      "description": "0 holds everything.",
      "maximum": 9223372036854775807
     },
     "isUnlimited": {
      "type": "boolean",
      "description": "Takes the limit away; not together with a limit."
     },
     "priority": {
      "type": "string",
      "enum": [
       "veryLow",
       "low",
       "normal",
       "high",
       "veryHigh"
      ]
     }
    },
    "additionalProperties": false
   },
   "KeyRequest": {
    "type": "object",
    "description": "How many may hold a key.",
    "properties": {
     "limit": {
      "type": "integer",
      "minimum": 1,
      "description": "In the whole cluster.",
      "maximum": 9223372036854775807
     }
    },
    "required": [
     "limit"
    ],
    "additionalProperties": false
   },
   "GraphFile": {
    "title": "Operon graph file",
    "description": "Operations that are submitted together, in YAML or JSON. docs/GRAPH_FILE.md explains every key.",
    "type": "object",
    "required": [
     "operations"
    ],
    "additionalProperties": false,
    "properties": {
     "$schema": {
      "description": "For editors; ignored."
     },
     "name": {
      "$ref": "#/components/schemas/GraphFile-name"
     },
     "order": {
      "description": "Which of several ready operations of one priority starts first. Default: criticalPath.",
      "enum": [
       "criticalPath",
       "submission",
       null
      ]
     },
     "queues": {
      "description": "Settings of operation queues, by name.",
      "oneOf": [
       {
        "type": "null"
       },
       {
        "type": "object",
        "propertyNames": {
         "$ref": "#/components/schemas/GraphFile-key"
        },
        "additionalProperties": {
         "$ref": "#/components/schemas/GraphFile-queue"
        },
        "maxProperties": 10000
       }
      ]
     },
     "keys": {
      "description": "Settings of keys that operations hold (exclusive), by name.",
      "oneOf": [
       {
        "type": "null"
       },
       {
        "type": "object",
        "propertyNames": {
         "$ref": "#/components/schemas/GraphFile-key"
        },
        "additionalProperties": {
         "$ref": "#/components/schemas/GraphFile-heldKey"
        },
        "maxProperties": 10000
       }
      ]
     },
     "defaults": {
      "description": "For every operation that does not say otherwise.",
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-defaults"
       }
      ]
     },
     "operations": {
      "oneOf": [
       {
        "description": "By name.",
        "type": "object",
        "propertyNames": {
         "$ref": "#/components/schemas/GraphFile-key"
        },
        "additionalProperties": {
         "$ref": "#/components/schemas/GraphFile-operation",
         "not": {
          "required": [
           "name"
          ]
         }
        }
       },
       {
        "description": "Each with its name.",
        "type": "array",
        "items": {
         "$ref": "#/components/schemas/GraphFile-operation",
         "required": [
          "name"
         ]
        }
       }
      ]
     }
    }
   },
   "GraphFile-key": {
    "description": "A name: 1 to 256 bytes of UTF-8, no control characters.",
    "type": "string",
    "minLength": 1,
    "maxLength": 256,
    "pattern": "^[^\\u0000-\\u001f\\u007f]*$"
   },
   "GraphFile-name": {
    "oneOf": [
     {
      "$ref": "#/components/schemas/GraphFile-key"
     },
     {
      "type": [
       "number",
       "boolean"
      ]
     }
    ]
   },
   "GraphFile-names": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "$ref": "#/components/schemas/GraphFile-name"
     },
     {
      "type": "array",
      "items": {
       "$ref": "#/components/schemas/GraphFile-name"
      }
     }
    ]
   },
   "GraphFile-text": {
    "description": "Numbers and truths are taken as they are written.",
    "oneOf": [
     {
      "type": "string",
      "pattern": "^[^\\u0000]*$"
     },
     {
      "type": [
       "number",
       "boolean"
      ]
     }
    ]
   },
   "GraphFile-duration": {
    "description": "500ms, 2s, 5m, 1h30m, 1d; a plain number is seconds. 0 to 100 years.",
    "oneOf": [
     {
      "type": "string",
      "pattern": "^(?=.)([0-9]+(\\.[0-9]+)?d)?([0-9]+(\\.[0-9]+)?h)?([0-9]+(\\.[0-9]+)?m)?([0-9]+(\\.[0-9]+)?s)?([0-9]+(\\.[0-9]+)?ms)?([0-9]+(\\.[0-9]+)?us)?([0-9]+(\\.[0-9]+)?ns)?$"
     },
     {
      "type": "string",
      "pattern": "^[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?$"
     },
     {
      "type": "number",
      "minimum": 0,
      "maximum": 3153600000
     }
    ]
   },
   "GraphFile-positiveDuration": {
    "$ref": "#/components/schemas/GraphFile-duration",
    "not": {
     "anyOf": [
      {
       "const": 0
      },
      {
       "type": "string",
       "pattern": "^[0.a-z]*$"
      }
     ]
    }
   },
   "GraphFile-moment": {
    "description": "ISO 8601 with a zone: 2026-05-01T08:30:00Z, 2026-05-01T10:30+02:00.",
    "type": "string",
    "pattern": "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|30|31)[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,9})?)?([Zz]|[-+]([01][0-9]|2[0-3]):?[0-5][0-9])$",
    "not": {
     "pattern": "^[0-9]{4}-(02-3|(04|06|09|11)-31)"
    }
   },
   "GraphFile-priority": {
    "enum": [
     "veryLow",
     "low",
     "normal",
     "high",
     "veryHigh"
    ]
   },
   "GraphFile-qualityOfService": {
    "enum": [
     "background",
     "utility",
     "default",
     "userInitiated",
     "userInteractive"
    ]
   },
   "GraphFile-condition": {
    "enum": [
     "unlessFailed",
     "finished",
     "succeeded",
     "failed",
     null
    ]
   },
   "GraphFile-dependency": {
    "type": "object",
    "propertyNames": {
     "$ref": "#/components/schemas/GraphFile-key"
    },
    "additionalProperties": {
     "$ref": "#/components/schemas/GraphFile-condition"
    },
    "minProperties": 1,
    "maxProperties": 1
   },
   "GraphFile-dependencies": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "type": "object",
      "propertyNames": {
       "$ref": "#/components/schemas/GraphFile-key"
      },
      "additionalProperties": {
       "$ref": "#/components/schemas/GraphFile-condition"
      }
     },
     {
      "type": "array",
      "items": {
       "oneOf": [
        {
         "$ref": "#/components/schemas/GraphFile-name"
        },
        {
         "$ref": "#/components/schemas/GraphFile-dependency"
        }
       ]
      }
     }
    ]
   },
   "GraphFile-retry": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "$ref": "#/components/schemas/GraphFile-retryLimit"
     },
     {
      "type": "object",
      "required": [
       "limit"
      ],
      "additionalProperties": false,
      "properties": {
       "limit": {
        "$ref": "#/components/schemas/GraphFile-retryLimit"
       },
       "delay": {
        "$ref": "#/components/schemas/GraphFile-duration"
       },
       "factor": {
        "type": "number",
        "minimum": 1
       },
       "maxDelay": {
        "$ref": "#/components/schemas/GraphFile-duration"
       },
       "jitter": {
        "type": "number",
        "minimum": 0,
        "maximum": 1
       }
      }
     }
    ]
   },
   "GraphFile-byteCount": {
    "description": "A size such as 512MiB, or a number of bytes.",
    "oneOf": [
     {
      "type": "integer",
      "minimum": 1,
      "maximum": 9223372036854775807
     },
     {
      "type": "string",
      "pattern": "^([0-9]{1,18}B?|([0-9]{1,6}(\\.[0-9]{1,6})?T|[0-9]{1,9}(\\.[0-9]{1,6})?[GMK])iB)$",
      "not": {
       "pattern": "^[0.]+([KMGT]i)?B?$"
      }
     }
    ]
   },
   "GraphFile-retryLimit": {
    "type": "integer",
    "minimum": 0,
    "maximum": 65535
   },
   "GraphFile-environment": {
    "type": "object",
    "propertyNames": {
     "minLength": 1,
     "pattern": "^[^=\\u0000]*$"
    },
    "additionalProperties": {
     "$ref": "#/components/schemas/GraphFile-text"
    }
   },
   "GraphFile-directory": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "$ref": "#/components/schemas/GraphFile-text",
      "not": {
       "const": ""
      }
     }
    ]
   },
   "GraphFile-heldKey": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "type": "object",
      "additionalProperties": false,
      "properties": {
       "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": 2147483647
       }
      }
     }
    ]
   },
   "GraphFile-queue": {
    "oneOf": [
     {
      "type": "null"
     },
     {
      "type": "object",
      "additionalProperties": false,
      "properties": {
       "maxConcurrentOperationCount": {
        "type": [
         "integer",
         "null"
        ],
        "minimum": 0,
        "maximum": 2147483647
       },
       "isSuspended": {
        "type": "boolean"
       },
       "priority": {
        "$ref": "#/components/schemas/GraphFile-priority"
       }
      }
     }
    ]
   },
   "GraphFile-defaults": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
     "queue": {
      "$ref": "#/components/schemas/GraphFile-name"
     },
     "priority": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-priority"
       }
      ]
     },
     "qualityOfService": {
      "$ref": "#/components/schemas/GraphFile-qualityOfService"
     },
     "timeout": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-positiveDuration"
       }
      ]
     },
     "retry": {
      "$ref": "#/components/schemas/GraphFile-retry"
     },
     "expectedDuration": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-duration"
       }
      ]
     },
     "exclusive": {
      "$ref": "#/components/schemas/GraphFile-names"
     },
     "delay": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-duration"
       }
      ]
     },
     "notBefore": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-moment"
       }
      ]
     },
     "deadline": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-moment"
       }
      ]
     },
     "environment": {
      "$ref": "#/components/schemas/GraphFile-environment"
     },
     "inheritEnvironment": {
      "$ref": "#/components/schemas/GraphFile-names"
     },
     "directory": {
      "$ref": "#/components/schemas/GraphFile-directory"
     },
     "grace": {
      "$ref": "#/components/schemas/GraphFile-duration"
     },
     "memory": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-byteCount"
       }
      ]
     },
     "cpuTime": {
      "oneOf": [
       {
        "type": "null"
       },
       {
        "$ref": "#/components/schemas/GraphFile-positiveDuration"
       }
      ]
     }
    }
   },
   "GraphFile-operation": {
    "type": "object",
    "additionalProperties": false,
    "properties": {
     "name": {
      "$ref": "#/components/schemas/GraphFile-name"
     },
     "description": {
      "$ref": "#/components/schemas/GraphFile-text"
     },
     "run": {
      "oneOf": [
       {
        "type": "string",
        "pattern": "^[^\\u0000]*\\S[^\\u0000]*$"
       },
       {
        "type": [
         "number",
         "boolean"
        ]
       }
      ]
     },
     "command": {
      "type": "array",
      "minItems": 1,
      "prefixItems": [
       {
        "$ref": "#/components/schemas/GraphFile-text",
        "not": {
         "const": ""
        }
       }
      ],
      "items": {
       "$ref": "#/components/schemas/GraphFile-text"
      }
     },
     "operation": {
      "$ref": "#/components/schemas/GraphFile-name",
      "not": {
       "enum": [
        "command",
        "external"
       ]
      }
     },
     "wait": {
      "$ref": "#/components/schemas/GraphFile-duration"
     },
     "external": {
      "const": true
     },
     "input": {},
     "version": {
      "type": "integer",
      "minimum": 1,
      "maximum": 2147483647
     },
     "dependencies": {
      "$ref": "#/components/schemas/GraphFile-dependencies"
     },
     "cancelSiblings": {
      "type": "boolean"
     },
     "queue": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/queue"
     },
     "priority": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/priority"
     },
     "qualityOfService": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/qualityOfService"
     },
     "timeout": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/timeout"
     },
     "retry": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/retry"
     },
     "expectedDuration": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/expectedDuration"
     },
     "exclusive": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/exclusive"
     },
     "delay": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/delay"
     },
     "notBefore": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/notBefore"
     },
     "deadline": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/deadline"
     },
     "environment": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/environment"
     },
     "inheritEnvironment": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/inheritEnvironment"
     },
     "directory": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/directory"
     },
     "grace": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/grace"
     },
     "memory": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/memory"
     },
     "cpuTime": {
      "$ref": "#/components/schemas/GraphFile-defaults/properties/cpuTime"
     }
    },
    "oneOf": [
     {
      "required": [
       "run"
      ]
     },
     {
      "required": [
       "command"
      ]
     },
     {
      "required": [
       "operation"
      ]
     },
     {
      "required": [
       "wait"
      ]
     },
     {
      "required": [
       "external"
      ]
     }
    ],
    "allOf": [
     {
      "description": "What has an input.",
      "if": {
       "required": [
        "input"
       ]
      },
      "then": {
       "anyOf": [
        {
         "required": [
          "operation"
         ]
        },
        {
         "required": [
          "external"
         ]
        }
       ]
      }
     },
     {
      "description": "What has a version.",
      "if": {
       "required": [
        "version"
       ]
      },
      "then": {
       "required": [
        "operation"
       ],
       "properties": {
        "operation": {
         "not": {
          "enum": [
           "wait",
           "nothing"
          ]
         }
        }
       }
      }
     },
     {
      "description": "What belongs to a process.",
      "if": {
       "anyOf": [
        {
         "required": [
          "environment"
         ]
        },
        {
         "required": [
          "inheritEnvironment"
         ]
        },
        {
         "required": [
          "directory"
         ]
        },
        {
         "required": [
          "grace"
         ]
        },
        {
         "required": [
          "memory"
         ]
        },
        {
         "required": [
          "cpuTime"
         ]
        }
       ]
      },
      "then": {
       "anyOf": [
        {
         "required": [
          "run"
         ]
        },
        {
         "required": [
          "command"
         ]
        }
       ]
      }
     },
     {
      "if": {
       "required": [
        "operation"
       ],
       "properties": {
        "operation": {
         "const": "wait"
        }
       }
      },
      "then": {
       "required": [
        "input"
       ],
       "properties": {
        "input": {
         "type": "object",
         "required": [
          "duration"
         ],
         "additionalProperties": false,
         "properties": {
          "duration": {
           "$ref": "#/components/schemas/GraphFile-duration"
          }
         }
        }
       }
      }
     },
     {
      "if": {
       "required": [
        "operation"
       ],
       "properties": {
        "operation": {
         "const": "nothing"
        }
       }
      },
      "then": {
       "properties": {
        "input": {
         "oneOf": [
          {
           "type": "null"
          },
          {
           "type": "object",
           "maxProperties": 0
          }
         ]
        }
       }
      }
     }
    ]
   },
   "GraphFile-header": {
    "description": "The first line of a JSON Lines file, if it is no operation.",
    "type": "object",
    "additionalProperties": false,
    "properties": {
     "$schema": {
      "$ref": "#/components/schemas/GraphFile/properties/$schema"
     },
     "name": {
      "$ref": "#/components/schemas/GraphFile/properties/name"
     },
     "order": {
      "$ref": "#/components/schemas/GraphFile/properties/order"
     },
     "queues": {
      "$ref": "#/components/schemas/GraphFile/properties/queues"
     },
     "keys": {
      "$ref": "#/components/schemas/GraphFile/properties/keys"
     },
     "defaults": {
      "$ref": "#/components/schemas/GraphFile/properties/defaults"
     }
    }
   },
   "GraphFile-line": {
    "description": "Any other line of a JSON Lines file.",
    "$ref": "#/components/schemas/GraphFile-operation",
    "required": [
     "name"
    ]
   }
  },
  "parameters": {
   "graph": {
    "name": "graph",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "A graph: its number, its name (the newest of it), or `@latest`.",
     "minLength": 1
    },
    "example": "wordcount"
   },
   "operation": {
    "name": "operation",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "An operation of the graph: its name, or its number in it.",
     "minLength": 1
    },
    "example": "split"
   },
   "dependencyGraph": {
    "name": "dependencyGraph",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "The graph of what is waited for.",
     "minLength": 1
    },
    "example": "wordcount"
   },
   "dependency": {
    "name": "dependency",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "What is waited for: a name, or a number.",
     "minLength": 1
    },
    "example": "split"
   },
   "queue": {
    "name": "queue",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "The name of a queue.",
     "minLength": 1
    },
    "example": "default"
   },
   "key": {
    "name": "key",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "The name of a key.",
     "minLength": 1
    },
    "example": "db"
   },
   "worker": {
    "name": "worker",
    "in": "path",
    "required": true,
    "schema": {
     "type": "string",
     "description": "A worker: its name or its id.",
     "minLength": 1
    },
    "example": "worker-1"
   }
  },
  "responses": {
   "400": {
    "description": "The request makes no sense; `refusal` says why.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "401": {
    "description": "A token is wanted, or this one is not known.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "403": {
    "description": "The token does not allow it, or it comes from a page of another site.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "404": {
    "description": "There is no such object.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "405": {
    "description": "Not this method.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "408": {
    "description": "The body came too slowly.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "409": {
    "description": "It cannot be done to what is there: started, finished, closed, another use of a key.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "413": {
    "description": "A limit.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "415": {
    "description": "Not this type of body.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "500": {
    "description": "A mistake of the coordinator.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "502": {
    "description": "Something behind the coordinator does not answer.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   },
   "503": {
    "description": "The coordinator cannot do it now; try again after `Retry-After` seconds.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    },
    "headers": {
     "Retry-After": {
      "description": "Seconds.",
      "schema": {
       "type": "string"
      }
     }
    }
   },
   "504": {
    "description": "Not done in the time that was given.",
    "content": {
     "application/problem+json": {
      "schema": {
       "$ref": "#/components/schemas/Problem"
      }
     }
    }
   }
  },
  "securitySchemes": {
   "token": {
    "type": "http",
    "scheme": "bearer",
    "description": "Wanted over TCP, unless the coordinator was started with --allow-any-user, and on its user's socket if it was given --tokens. A token may read, or operate."
   }
  }
 }
}

"""##
}
