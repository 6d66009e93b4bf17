// The download of all data stored about the user: as JSON, its schema, and a page to read.

import Accounts
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import PersonalData
import SignIn
import Support

/// The data stored about the user, to read.
struct StoredDataView: PageView {
    struct Section: Sendable {
        let name: String
        let count: String
        let hasMore: Bool
        let shown: String
        let rows: [Row]
    }

    struct Row: Sendable {
        let fields: [Field]
    }

    struct Field: Sendable {
        let name: String
        let value: String
    }

    static let template = PageTemplate.dataRead
    static let place = PagePlace.data
    let sections: [Section]
}

extension PortalPage {
    static let schemaPath = "/me/data/schema.json"

    func download(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let time = now()
        let records = try await pool.run {
            try store.persons.records(user: session.userID, now: time)
        }
        var headers: HTTPFields = [
            .cacheControl: "no-store",
            .contentDisposition: "attachment; filename=\"my-data.json\"",
        ]
        headers.append(PortalHeaders.policy())
        headers.append(PortalHeaders.referrer)
        let text = PortalExport.text(
            records, service: mailer.settings.service, schema: origin + Self.schemaPath, at: time)
        return Response(type: "application/json", headers: headers, body: ByteBuffer(string: text))
    }

    /// The same as a page: the newest rows of each section, with the names used in the file.
    func readData(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let time = now()
        let records = try await pool.run {
            try store.persons.records(user: session.userID, now: time)
        }
        let words = request.words
        let sections = records.filter { !$0.rows.isEmpty }.map { section in
            let shown = section.rows.suffix(PortalExport.shownRows).reversed()
            return StoredDataView.Section(
                name: PortalExport.heading(section.name), count: words.number(section.rows.count),
                hasMore: section.rows.count > shown.count, shown: words.number(shown.count),
                rows: shown.map { row in
                    StoredDataView.Row(
                        fields: row.compactMap { field in
                            PortalExport.read(field.value, words).map {
                                StoredDataView.Field(
                                    name: PortalExport.heading(field.name), value: $0)
                            }
                        })
                })
        }
        return try request.html(
            StoredDataView(sections: sections), title: request.language.text("Everything about you")
        )
    }
}

/// Sections and members in a fixed order, indented by two spaces per level, so that people
/// can read the file too.
enum PortalExport {
    /// The most rows of a section that the page shows.
    static let shownRows = 20

    static func text(
        _ records: [UserExportRecords], service: String, schema: String, at time: Int64
    ) -> String {
        var text =
            "{\n  \"$schema\": \(string(schema)),\n  \"service\": \(string(service)),\n  \"written_at\": \(string(timestamp(time)))"
        for section in records {
            text += ",\n  \(string(section.name)): ["
            for (index, row) in section.rows.enumerated() {
                text += (index == 0 ? "\n" : ",\n") + "    {"
                text += row.enumerated().map { offset, field in
                    (offset == 0 ? "\n" : ",\n")
                        + "      \(string(field.name)): \(value(field.value))"
                }.joined()
                text += "\n    }"
            }
            text += section.rows.isEmpty ? "]" : "\n  ]"
        }
        return text + "\n}\n"
    }

    /// JSON Schema (draft 2020-12) of the file.
    static func schema(service: String) -> String {
        let sections = UserExportShape.all.map { section in
            let fields = section.fields.map { "\(string($0.name)): \(type($0.kind))" }.joined(
                separator: ", ")
            let required = section.fields.map { string($0.name) }.joined(separator: ", ")
            return """
                    \(string(section.name)): {"type": "array", "items": {"type": "object", "additionalProperties": false,
                      "required": [\(required)],
                      "properties": {\(fields)}}}
                """
        }
        let names = ["service", "written_at"] + UserExportShape.all.map(\.name)
        return """
            {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "title": \(string("What \(service) stores about a user")),
              "type": "object",
              "additionalProperties": false,
              "required": [\(names.map(string).joined(separator: ", "))],
              "properties": {
                "$schema": {"type": "string"},
                "service": {"type": "string"},
                "written_at": {"type": "string", "format": "date-time"},
            \(sections.joined(separator: ",\n"))
              }
            }

            """
    }

    private static func type(_ kind: UserExportShape.Kind) -> String {
        switch kind {
        case .integer: #"{"type": ["integer", "null"]}"#
        case .text: #"{"type": ["string", "null"]}"#
        case .flag: #"{"type": ["boolean", "null"]}"#
        case .time: #"{"type": ["string", "null"], "format": "date-time"}"#
        case .day: #"{"type": ["string", "null"], "format": "date"}"#
        case .words: #"{"type": ["array", "null"], "items": {"type": "string"}}"#
        case .json: "{}"
        }
    }

    /// `first_given_at` → `First given at`.
    static func heading(_ name: String) -> String {
        let words = name.replacing("_", with: " ")
        return words.prefix(1).uppercased() + words.dropFirst()
    }

    /// A value in readable form; nil for none.
    static func read(_ value: UserExportRecords.Value, _ words: PortalText) -> String? {
        switch value {
        case .null: nil
        case .integer(let number): "\(number)"
        case .text(let text), .json(let text): text
        case .flag(let flag): flag ? words.language.text("yes") : words.language.text("no")
        case .time(let seconds): words.time(seconds)
        case .day(let day): words.day(day)
        case .words(let list): list.joined(separator: " ")
        }
    }

    private static func value(_ value: UserExportRecords.Value) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): "\(number)"
        case .text(let text): string(text)
        case .flag(let flag): flag ? "true" : "false"
        case .time(let seconds): string(timestamp(seconds))
        case .day(let day):
            string(
                String(
                    timestamp(day.multipliedReportingOverflow(by: 86_400).partialValue).prefix(10)))
        case .words(let words): "[" + words.map(string).joined(separator: ", ") + "]"
        // Unchanged if it is JSON, otherwise as text, so that the whole stays JSON.
        case .json(let text):
            (try? JSONSerialization.jsonObject(with: Data(text.utf8), options: [.fragmentsAllowed]))
                == nil ? string(text) : text
        }
    }

    private static func string(_ text: String) -> String { JSONValue.string(text).text }

    static func timestamp(_ seconds: Int64) -> String { Timestamp(seconds).text }
}
