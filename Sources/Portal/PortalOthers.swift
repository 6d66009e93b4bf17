// Others than the team that wrote to an address: on its page, and as a file to show to the team.

import Accounts
import Foundation
import HTTP
import HTTPTypes
import Hummingbird
import PersonalData
import SignIn
import Support

extension PortalPage {
    /// As shown on the account's page: the current address first, and only those that were used.
    func uses(
        of account: UserExportAccount, _ words: PortalText
    ) async throws -> [AccountView.Others] {
        let time = now()
        return try await pool.run { try store.persons.uses(account: account.number, now: time) }
            .map { list in
                AccountView.Others(
                    earlierAddress: list.address == account.address ? nil : list.address.wireForm,
                    summary: list.proved.isEmpty
                        ? nil
                        : words.language.text(
                            "Senders that are not of this team, in the last 30 days: {n}",
                            ["n": words.number(list.proved.count)]),
                    senders: list.proved.map { use in
                        AccountView.OtherSender(
                            domain: use.domain, selector: use.selector,
                            firstAt: words.time(use.firstAt), lastDay: words.day(use.lastDay),
                            count: words.number(use.count))
                    },
                    unproved: list.unproved == 0
                        ? nil
                        : words.language.text(
                            "Messages without a proof of who sent them: {n}",
                            ["n": words.number(list.unproved)]))
            }
    }

    /// The proof for one address, to show to the team or to an authority.
    func downloadOthers(
        _ request: PortalRequest, _ session: PageSession
    ) async throws -> Response {
        let account = try await account(request, session)
        let time = now()
        let lists = try await pool.run {
            try store.persons.uses(account: account.number, now: time)
        }
        guard !lists.isEmpty else { throw PortalRefusal.notFound }
        var headers: HTTPFields = [
            .cacheControl: "no-store",
            .contentDisposition: "attachment; filename=\"used-by-others.json\"",
        ]
        headers.append(PortalHeaders.policy())
        headers.append(PortalHeaders.referrer)
        let text = PortalExport.uses(
            lists, team: account.team.name, service: mailer.settings.service, at: time)
        return Response(type: "application/json", headers: headers, body: ByteBuffer(string: text))
    }
}

extension PortalExport {
    /// The file of `/me/addresses/N/others.json`, in English: it is evidence for others.
    static func uses(
        _ lists: [AddressUseList], team: String, service: String, at time: Int64
    ) -> String {
        let addresses = lists.map { list in
            JSONValue.object([
                "address": .string(list.address.wireForm),
                "senders": .array(
                    list.proved.map { use in
                        .object([
                            "signing_domain": .string(use.domain),
                            "selector": .string(use.selector),
                            "public_key_at": .string("\(use.selector)._domainkey.\(use.domain)"),
                            "first_at": .string(timestamp(use.firstAt)),
                            "messages": .integer(Int64(use.count)),
                        ])
                    }),
                "messages_without_proof": .integer(Int64(list.unproved)),
            ])
        }
        let file: JSONObject = [
            "service": .string(service), "written_at": .string(timestamp(time)),
            "given_to": .string(team),
            "meaning": .string(
                "Each sender wrote to the address, which this service gave only to the team in "
                    + "given_to. A valid DKIM signature (RFC 6376) of the signing domain is aligned "
                    + "with From and covers To or Cc with the address. All messages were refused, "
                    + "and nothing of them was kept."),
            "addresses": .array(addresses),
        ]
        return JSONValue.object(file).text + "\n"
    }
}
