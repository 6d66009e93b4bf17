// Templates: values are escaped by our own rules, and nothing in a template changes that.

import Languages
import TestSupport
import Testing

@Suite(.blocking) struct TemplateTests {
    /// Mustache's own escaping goes by Character, and leaves out characters that a mark joins.
    @Test(arguments: ["\u{600}<", "<\u{301}", "\u{D4E}<", "\u{111C2}<", "\u{FE0F}<", "\u{200D}<"])
    func html_valueWithMarkBesideATag_isEscaped(value: String) throws {
        let values: [String: Any] = [
            "value": value, "items": [["value": value]], "inner": ["value": value],
        ]
        let template = try HTMLTemplate(
            "{{value}}{{#items}}{{value}}{{/items}}{{#inner}}{{value}}{{/inner}}{{#items}}{{#inner}}{{value}}{{/inner}}{{/items}}"
        )
        let html = template.render(values)
        #expect(!html.utf8.contains(UInt8(ascii: "<")))
        #expect(html.utf8.count { $0 == UInt8(ascii: "&") } == 4)
    }

    @Test func html_valueWithATag_isNotReadAsATemplate() throws {
        #expect(try HTMLTemplate("{{a}}").render(["a": "{{b}}", "b": "<"]) == "{{b}}")
    }

    @Test func text_value_isWrittenAsItIs() throws {
        #expect(try TextTemplate("{{a}}").render(["a": "<\u{301}&"]) == "<\u{301}&")
    }

    @Test(arguments: [
        "{{% CONTENT_TYPE:TEXT}}{{a}}", "{{>part}}", "{{<parent}}{{/parent}}", "{{#a}}",
        "\u{600}{{%x}}",
        "{{ % CONTENT_TYPE:TEXT}}",
        "{{=<% %>=}}<%a%>", "{{\n> part}}",
    ])
    func init_whatWouldChangeTheEscapingOrIsNoTemplate_isRefused(text: String) {
        #expect(throws: TemplateSyntaxError.self) { try HTMLTemplate(text) }
        #expect(throws: TemplateSyntaxError.self) { try TextTemplate(text) }
    }
}
