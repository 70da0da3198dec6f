enum OpenAPIDocument { static let text = "{}\n" }
