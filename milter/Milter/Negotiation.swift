// The negotiation: the required offer of an MTA, and the refusal of an MTA without it.

import CMilter

/// A handler's needs as libmilter's flags.
struct Negotiation: Equatable {
    /// SMFIF_* that the handler requires.
    let actions: UInt
    /// SMFIP_*: unwanted callbacks and replies, and leading spaces. All belong to milter
    /// protocol 6 (Postfix 2.6, 2009).
    let protocolSteps: UInt

    init(_ needs: MilterNeeds) {
        actions = Self.actionFlags.reduce(0) { needs.actions.contains($1.0) ? $0 | UInt($1.1) : $0 }
        var steps = UInt(SMFIP_HDR_LEADSPC)
        for (event, no, noReply) in Self.eventFlags {
            if event != .connect, !needs.events.contains(event) {
                steps |= UInt(no)
            } else if !needs.answers.contains(event) {
                steps |= UInt(noReply)
            }
        }
        if needs.events.contains(.body) && needs.answers.contains(.body) {
            steps |= UInt(SMFIP_SKIP)
        }
        protocolSteps = steps
    }

    /// The reason why an MTA with this offer cannot be served; nil if it can.
    func refusal(offeredActions: UInt, offeredSteps: UInt) -> String? {
        let missing = Self.actionFlags.filter { actions & UInt($0.1) & ~offeredActions != 0 }.map(
            \.2)
        if !missing.isEmpty {
            return "the MTA does not allow the milter to \(missing.joined(separator: ", "))"
        }
        let steps = protocolSteps & ~offeredSteps
        if steps != 0 {
            return
                "the MTA lacks protocol steps 0x\(String(steps, radix: 16)); Postfix needs milter_protocol = 6"
        }
        return nil
    }

    private static let actionFlags: [(MilterActionKinds, Int, String)] = [
        (.addHeaders, SMFIF_ADDHDRS, "add header fields"),
        (.changeHeaders, SMFIF_CHGHDRS, "change header fields"),
        (.changeBody, SMFIF_CHGBODY, "replace the body"),
        (.changeFrom, SMFIF_CHGFROM, "change the sender"),
        (.addRecipient, SMFIF_ADDRCPT, "add recipients"),
        (.addRecipientWithArguments, SMFIF_ADDRCPT_PAR, "add recipients with arguments"),
        (.deleteRecipient, SMFIF_DELRCPT, "delete recipients"),
    ]

    private static let eventFlags: [(MilterEvents, Int, Int)] = [
        (.connect, SMFIP_NOCONNECT, SMFIP_NR_CONN),
        (.helo, SMFIP_NOHELO, SMFIP_NR_HELO),
        (.mail, SMFIP_NOMAIL, SMFIP_NR_MAIL),
        (.recipient, SMFIP_NORCPT, SMFIP_NR_RCPT),
        (.data, SMFIP_NODATA, SMFIP_NR_DATA),
        (.unknown, SMFIP_NOUNKNOWN, SMFIP_NR_UNKN),
        (.header, SMFIP_NOHDRS, SMFIP_NR_HDR),
        (.endOfHeaders, SMFIP_NOEOH, SMFIP_NR_EOH),
        (.body, SMFIP_NOBODY, SMFIP_NR_BODY),
    ]
}

extension MilterStage {
    /// SMFIM_*.
    var libmilterStage: Int32 {
        switch self {
        case .connect: SMFIM_CONNECT
        case .helo: SMFIM_HELO
        case .mail: SMFIM_ENVFROM
        case .recipient: SMFIM_ENVRCPT
        case .data: SMFIM_DATA
        case .endOfHeaders: SMFIM_EOH
        case .endOfMessage: SMFIM_EOM
        }
    }
}
