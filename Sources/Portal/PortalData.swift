// What is stored about oneself, to take away, and to be rid of.

import Accounts
import SignIn
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import JSON
import PersonalData
import Support

extension PortalPage {
    func download(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let time = now()
        let records = try await pool.run { try store.persons.records(user: session.userID, now: time) }
        var headers: HTTPFields = [
            .cacheControl: "no-store",
            .contentDisposition: "attachment; filename=\"my-data.json\"",
        ]
        headers.append(PortalHeaders.policy())
        headers.append(PortalHeaders.referrer)
        let text = PortalExport.text(records, service: mailer.settings.service, at: time)
        return Response(type: "application/json", headers: headers, body: ByteBuffer(string: text))
    }

    // MARK: Deletion

    /// Asks again, by mail: a session that someone found open is not enough.
    func sendDeletionLink(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let link = try await pool.run {
            try store.page.deletionLink(for: session, browser: browser, limits: mailer.settings.limits, now: now())
        }
        guard sendLater("no deletion link was sent", { try mailer.send(link, .deletion, now: now()) }) else {
            throw PortalRefusal.busy
        }
        return try request.html("delete", ["sent": true], title: request.language.text("Check your inbox"), current: .data)
    }

    func showDeletion(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let (token, browser) = (try request.token(), request.browser)
        let state = try await pool.run { try store.page.state(of: token, .deletion, browser: browser, now: now()) }
        guard state == .good else { return try deadLink(request, state) }
        return try request.html(
            "delete-now", ["token": token], title: request.language.text("Delete everything?"), current: .data)
    }

    func delete(_ request: PortalRequest, _ session: PageSession) async throws -> Response {
        let token = try request.token()
        guard let browser = request.browser else { throw PortalRefusal.foreign }
        let time = now()
        let isDone = try await pool.run {
            guard try store.page.useDeletionLink(token, session: session, browser: browser, now: time) else { return false }
            try store.users.remove(session.userID, Self.change(session, time))
            return true
        }
        guard isDone else {
            return try request.html("link", title: request.language.text("This link has expired"), status: .gone)
        }
        return request.redirect(
            "/me/goodbye",
            cookies: [PortalCookies.session, PortalCookies.browser, PortalCookies.known].map(cookies.remove))
    }
}

/// The download as JSON: sections in a fixed order, members in theirs, two spaces a level, so that people can read it too.
enum PortalExport {
    static func text(_ records: [UserExportRecords], service: String, at time: Int64) -> String {
        var text = "{\n  \"service\": \(string(service)),\n  \"written_at\": \(string(timestamp(time)))"
        for section in records {
            text += ",\n  \(string(section.name)): ["
            for (index, row) in section.rows.enumerated() {
                text += (index == 0 ? "\n" : ",\n") + "    {"
                text += row.enumerated().map { offset, field in
                    (offset == 0 ? "\n" : ",\n") + "      \(string(field.name)): \(value(field.value))"
                }.joined()
                text += "\n    }"
            }
            text += section.rows.isEmpty ? "]" : "\n  ]"
        }
        return text + "\n}\n"
    }

    private static func value(_ value: UserExportRecords.Value) -> String {
        switch value {
        case .null: "null"
        case .integer(let number): "\(number)"
        case .text(let text): string(text)
        case .flag(let flag): flag ? "true" : "false"
        case .time(let seconds): string(timestamp(seconds))
        case .day(let day): string(String(timestamp(day.multipliedReportingOverflow(by: 86_400).partialValue).prefix(10)))
        case .words(let words): "[" + words.map(string).joined(separator: ", ") + "]"
        // As it is stored, where it is JSON; as text where it is not, so that the whole stays JSON.
        case .json(let text):
            (try? JSONSerialization.jsonObject(with: Data(text.utf8), options: [.fragmentsAllowed])) == nil ? string(text) : text
        }
    }

    private static func string(_ text: String) -> String { JSONValue.string(text).text }

    private static func timestamp(_ seconds: Int64) -> String { Timestamp(seconds).text }
}
