// Mustache templates. Only this module imports Mustache. Mustache's own escaping goes by Character,
// so our texts are never rendered with it.

import Mustache
import Support

/// A template of HTML. Each value is escaped, except in `{{{…}}}`.
package struct HTMLTemplate: Sendable {
    private let template: MustacheTemplate

    /// Throws `TemplateSyntaxError` for a text that is not a template.
    package init(_ text: String) throws(TemplateSyntaxError) {
        template = try TemplateSyntaxError.parsed(text, as: HTMLContent.name)
    }

    package func render(_ values: [String: Any]) -> String { template.render(values) }

    /// - Parameters:
    ///   - view: a value. Its stored properties are the values, by name.
    ///   - frame: the same, for names that the view does not have.
    package func render(_ view: some Sendable, in frame: some Sendable) -> String {
        template.render(TemplateLayers(layers: [view, frame]))
    }
}

/// Looks a name up in one value after another.
private struct TemplateLayers: MustacheParent {
    let layers: [Any]

    func child(named name: String) -> Any? {
        for layer in layers {
            guard
                let value = Mirror(reflecting: layer).children.first(where: { $0.label == name })?
                    .value
            else { continue }
            let mirror = Mirror(reflecting: value)
            guard mirror.displayStyle == .optional else { return value }
            if let wrapped = mirror.children.first?.value { return wrapped }
        }
        return nil
    }
}

/// A template of plain text: values are written as they are.
package struct TextTemplate: Sendable {
    private let template: MustacheTemplate

    /// Throws `TemplateSyntaxError` for a text that is not a template.
    package init(_ text: String) throws(TemplateSyntaxError) {
        template = try TemplateSyntaxError.parsed(text, as: "TEXT")
    }

    package func render(_ values: [String: Any]) -> String { template.render(values) }
}

/// Why a text is not a template.
package struct TemplateSyntaxError: Error, Sendable, CustomStringConvertible {
    package let description: String

    fileprivate static func parsed(
        _ text: String, as type: String
    ) throws(TemplateSyntaxError) -> MustacheTemplate {
        // A pragma would choose another escaping, and a partial would be rendered with Mustache's
        // own. Other delimiters would hide either.
        for start in text.utf8.ranges(of: "{{".utf8) {
            let tag = text.utf8[start.upperBound...].first {
                ![0x20, 0x09, 0x0A, 0x0D].contains($0)
            }
            guard let tag, "%><=".utf8.contains(tag) else { continue }
            throw TemplateSyntaxError(
                description: "a tag that begins with \(Unicode.Scalar(tag)) is not supported")
        }
        HTMLContent.register()
        do {
            return try MustacheTemplate(string: "{{% CONTENT_TYPE:\(type)}}" + text)
        } catch {
            throw TemplateSyntaxError(description: "\(error)")
        }
    }
}

/// HTML with our own escaping.
private struct HTMLContent: MustacheContentType {
    static let name = "POSTERN"

    private static let registration: Void = MustacheContentTypes.register(
        HTMLContent(), named: name)

    static func register() { registration }

    func escapeText(_ text: String) -> String { HTMLText.escaped(text) }
}
