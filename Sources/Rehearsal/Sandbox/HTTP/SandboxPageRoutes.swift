// The page of a sandbox: mail, requests, and the reasons for refusals. Server-rendered; values are
// escaped.

import HTTP
import HTTPTypes
import Hummingbird
import Languages
import NIOCore
import Support

struct SandboxPageRoutes: RouteModule {
    let desk: SandboxDesk

    func addRoutes(to routes: Routes) {
        routes.open.get("/sandbox") { _, _ -> Response in
            var headers: HTTPFields = [:]
            headers[.contentSecurityPolicy] =
                "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'"
            return Response(
                type: "text/html; charset=utf-8", headers: headers,
                body: ByteBuffer(string: try SandboxPage.render(desk)))
        }.get("/sandbox/style.css") { _, _ in
            Response(type: "text/css; charset=utf-8", body: ByteBuffer(string: Embedded.style_css))
        }.get("/sandbox/button") { request, _ -> Response in
            var headers: HTTPFields = [:]
            headers[.contentSecurityPolicy] =
                "default-src 'none'; style-src 'self'; img-src 'self' blob:; script-src 'self'; connect-src 'self'; "
                + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
            let page = try SandboxButtonPage(
                request, url: desk.facts.url, clientID: desk.facts.pageClientID)
            return Response(
                type: "text/html; charset=utf-8", headers: headers,
                body: ByteBuffer(string: try page.render()))
        }.get("/sandbox/button.js") { _, _ in
            Response(
                type: "text/javascript; charset=utf-8", body: ByteBuffer(string: Embedded.button_js)
            )
        }
    }
}

enum SandboxPage {
    /// Throws if a template does not parse.
    static func render(_ desk: SandboxDesk) throws -> String {
        let (facts, entries) = (desk.facts, desk.journal.entries)
        let mails = (desk.room?.mailboxes.mails ?? []).reversed().map(mail)
        let offset = desk.clock.offset
        let content = try HTMLTemplate(Embedded.sandbox_mustache).render(
            present([
                "url": facts.url, "smtp": facts.smtp, "client": facts.clientID,
                "source": facts.source,
                "now": UTCTime.text(desk.clock.now), "offset": offset == 0 ? "" : "+\(offset) s",
                "mail_count": "\(mails.count)",
                "has_mails": !mails.isEmpty, "mails": mails, "count": "\(entries.count)",
                "refused": "\(entries.count(where: \.isRefusal))", "has_entries": !entries.isEmpty,
                "entries": entries.map(entry),
                "has_failures": !desk.failures.orders.isEmpty,
                "failures": desk.failures.orders.map {
                    [
                        "failure": $0.failure.rawValue, "part": $0.part.rawValue,
                        "times": "\($0.times)",
                    ]
                },
                "users": facts.users.map {
                    present([
                        "user": $0.user, "inbox": $0.inbox, "sub": $0.sub ?? "",
                        "address": $0.address ?? "",
                    ])
                },
            ]))
        return try HTMLTemplate(Embedded.layout_mustache).render(
            ["title": "Postern sandbox", "is_narrow": false, "content": content] as [String: Any])
    }

    /// Removes empty texts: a section of Mustache would treat them as present.
    private static func present(_ values: [String: Any]) -> [String: Any] {
        values.filter { $0.value as? String != "" }
    }

    private static func mail(_ mail: SandboxMail) -> [String: Any] {
        present([
            "number": "\(mail.number)", "time": UTCTime.text(mail.at), "side": mail.side.rawValue,
            "recipient": mail.recipient,
            "from": mail.from, "reply_to": mail.replyTo ?? "",
            "subject": mail.subject.isEmpty ? "(no subject)" : mail.subject,
            "code": mail.code ?? "", "text": mail.text,
        ])
    }

    private static func entry(_ entry: SandboxJournal.Entry) -> [String: Any] {
        present([
            "method": entry.method, "path": entry.path, "status": "\(entry.status)",
            "time": UTCTime.text(entry.at),
            "kind": entry.isRefusal ? "refused" : "fine", "error": entry.error ?? "",
            "cause": entry.cause ?? "",
            "says": entry.error != nil || entry.cause != nil,
        ])
    }
}
