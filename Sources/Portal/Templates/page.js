"use strict";
// Copying, and passkeys: reads what a form says in data attributes, asks the browser, fills the form and sends it. Nothing else on the
// page changes but what is hidden, the words of a failure, and that something was copied.
for (const button of navigator.clipboard ? document.querySelectorAll("[data-copy]") : []) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = button.dataset.done;
    button.setAttribute("role", "status");
  });
}
(() => {
  if (!window.PublicKeyCredential) return;
  const octets = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer))).replace(/\+/g, "-").replace(/\//g, "_").replace(/=/g, "");
  const send = (form, values) => {
    for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
    form.submit();
  };
  const fail = (form, error) => {
    if (error.name === "AbortError") return;
    const words = form.querySelector("[data-failure]");
    if (words) words.hidden = false;
  };

  const ids = (list) => list.split(" ").filter(Boolean);
  // What a passkey manager may forget (WebAuthn section 5.1.10). Where it cannot, nothing is lost.
  const signal = (name, options) => PublicKeyCredential[name]?.(options).catch(() => {});

  // Whether a passkey can be offered after a code.
  const can = document.querySelector('input[name="passkeys"]');
  if (can) {
    PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable?.().then((is) => { can.value = is ? "yes" : ""; });
  }

  const door = document.getElementById("passkey-sign-in");
  if (door) {
    let waiting = new AbortController();
    const ask = async (mediation) => {
      const found = await navigator.credentials.get({
        mediation,
        signal: waiting.signal,
        publicKey: { challenge: octets(door.dataset.challenge), rpId: door.dataset.rp, userVerification: "required" },
      });
      send(door, {
        credential: text(found.rawId),
        client_data: text(found.response.clientDataJSON),
        authenticator_data: text(found.response.authenticatorData),
        signature: text(found.response.signature),
        user_handle: found.response.userHandle ? text(found.response.userHandle) : "",
      });
    };
    door.hidden = false;
    if (door.dataset.unknown) signal("signalUnknownCredential", { rpId: door.dataset.rp, credentialId: door.dataset.unknown });
    door.addEventListener("submit", (event) => {
      event.preventDefault();
      waiting.abort();
      waiting = new AbortController();
      ask("optional").catch((error) => fail(door, error));
    });
    // Where the browser offers passkeys in the field for the address, no button is needed.
    PublicKeyCredential.isConditionalMediationAvailable?.().then((can) => {
      if (can && door.dataset.autofill) ask("conditional").catch(() => {});
    });
  }

  const making = document.getElementById("passkey-add");
  if (making) {
    making.hidden = false;
    const mine = { rpId: making.dataset.rp, userId: making.dataset.user };
    signal("signalAllAcceptedCredentials", { ...mine, allAcceptedCredentialIds: ids(making.dataset.known) });
    signal("signalCurrentUserDetails", { ...mine, name: making.dataset.name, displayName: making.dataset.name });
    making.addEventListener("submit", async (event) => {
      event.preventDefault();
      const data = making.dataset;
      try {
        const made = await navigator.credentials.create({
          publicKey: {
            challenge: octets(data.challenge),
            rp: { id: data.rp, name: data.service },
            user: { id: octets(data.user), name: data.name, displayName: data.name },
            pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: "public-key", alg })),
            authenticatorSelection: { residentKey: "required", requireResidentKey: true, userVerification: "required" },
            excludeCredentials: ids(data.known).map((id) => ({ type: "public-key", id: octets(id) })),
            attestation: data.attestation,
          },
        });
        send(making, {
          client_data: text(made.response.clientDataJSON),
          attestation: text(made.response.attestationObject),
        });
      } catch (error) {
        fail(making, error);
      }
    });
  }
})();
// A proof of work: small puzzles, which the server checks at once. The browser's own crypto computes beside the page, which stays
// usable.
(() => {
  const work = document.getElementById("work");
  if (!work || !window.crypto?.subtle) return;
  const octets = (text) => new TextEncoder().encode(text);
  const { seed, puzzles, iterations, target } = work.dataset;
  const solve = async (puzzle) => {
    const salt = octets(`${seed}.${puzzle}`);
    for (let number = 0; ; number++) {
      const key = await crypto.subtle.importKey("raw", octets(String(number)), "PBKDF2", false, ["deriveBits"]);
      const parameters = { name: "PBKDF2", hash: "SHA-256", salt, iterations: Number(iterations) };
      const bits = await crypto.subtle.deriveBits(parameters, key, 32);
      if (new DataView(bits).getUint32(0) < Number(target)) return number;
    }
  };
  work.hidden = false;
  work.addEventListener("submit", async (event) => {
    event.preventDefault();
    work.querySelector("button").disabled = true;
    for (const shown of work.querySelectorAll("[data-working]")) shown.hidden = false;
    const progress = work.querySelector("progress");
    const solution = [];
    let next = 0;
    const go = async () => {
      while (next < Number(puzzles)) {
        const puzzle = next++;
        solution[puzzle] = await solve(puzzle);
        progress.value += 1;
      }
    };
    try {
      await Promise.all(Array.from({ length: Math.min(4, navigator.hardwareConcurrency || 1) }, go));
    } catch {
      // The server then says that the browser did not finish, and offers the other ways.
      solution.length = 0;
    }
    work.elements.solution.value = solution.join(",");
    work.submit();
  });
})();
// A double click is one click: what the form asks for is done by the time that the second one would arrive. Last in this file, so
// that a form which a passkey answers is not taken for sent.
for (const form of document.querySelectorAll('form[method="post"]')) {
  let isSent = false;
  form.addEventListener("submit", (event) => {
    if (isSent) return event.preventDefault();
    if (event.defaultPrevented) return;
    isSent = true;
    setTimeout(() => { isSent = false; }, 3000);
  });
}
