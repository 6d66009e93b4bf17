// Sign-in with a button, and checks that decisions require: in a popup, or it leads there. docs/SIGN_IN.md and
// docs/DECISIONS.md say how to use it.
(() => {
  "use strict";
  const issuer = {{issuer}};
  const texts = {{texts}};
  const service = {{service}};
  const names = (
    "clientId redirectUri responseType responseMode scope state nonce codeChallenge codeChallengeMethod prompt maxAge " +
    "loginHint uiLocales acrValues"
  ).split(" ");
  let settings = {};
  let waiting = null;

  const address = (options) => {
    const url = new URL(issuer + "/auth/authorize");
    for (const name of names) {
      const value = options[name];
      if (value || value === 0) url.searchParams.set(name.replace(/[A-Z]/g, (letter) => "_" + letter.toLowerCase()), value);
    }
    return url.href;
  };

  // What the app gets: the answer without what was checked here.
  const success = ({ code, id_token, state, user }) => {
    const detail = { authorization: { code, id_token, state } };
    if (user) detail.user = JSON.parse(user);
    return detail;
  };

  // Opens a page of the issuer, and waits for its answer with this state. There is one popup.
  const inPopup = (key, url, state, read) => {
    if (waiting) {
      waiting.popup.focus();
      return waiting.key === key ? waiting.promise : Promise.reject({ error: "popup_open" });
    }
    const popup = open(url, "postern-sign-in", "popup,width=480,height=720");
    if (!popup) return Promise.reject({ error: "popup_blocked" });
    const promise = new Promise((resolve, reject) => {
      let looks = 0;
      const end = (settle, value) => {
        clearInterval(timer);
        removeEventListener("message", receive);
        waiting = null;
        settle(value);
      };
      const receive = ({ origin, source, data }) => {
        // A popup that closed already is no source any more.
        if (origin !== new URL(issuer).origin || (source && source !== popup)) return;
        if (data?.type !== "authorization_response") return;
        const response = data.response;
        if (response?.state !== state || response.iss !== issuer) {
          end(reject, { error: "invalid_response" });
        } else if (response.error) {
          end(reject, { error: response.error, error_description: response.error_description });
        } else {
          end(resolve, read(response));
        }
      };
      // The message of a popup that closes may come after it closed.
      const timer = setInterval(() => {
        looks = popup.closed ? looks + 1 : 0;
        if (looks > 2) end(reject, { error: "popup_closed" });
      }, 250);
      addEventListener("message", receive);
    });
    waiting = { key, popup, promise };
    return promise;
  };

  const start = (options) => {
    if (!options.clientId || !options.redirectUri) {
      return Promise.reject({ error: "invalid_request" });
    }
    if (options.mode === "popup") {
      // The answer goes to the origin of the redirect URI alone, so that no other page could get it.
      if (new URL(options.redirectUri).origin !== location.origin) {
        return Promise.reject({ error: "invalid_origin" });
      }
      const state = options.state || crypto.randomUUID();
      return inPopup("", address({ ...options, state, responseMode: "web_message" }), state, success);
    }
    // Another page gets the answer, and has to know what it was asked with.
    if (!options.state) return Promise.reject({ error: "invalid_request" });
    location.assign(address(options));
    return new Promise(() => {});
  };

  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));

  const signIn = (more) => {
    // Clicked again: it is the same sign-in, and has one event.
    if (waiting?.key === "") {
      waiting.popup.focus();
      return waiting.promise;
    }
    const options = { scope: "openid", responseType: "code", ...settings, ...more };
    if (options.codeChallenge) options.codeChallengeMethod = "S256";
    const result = start(options);
    result.then(
      (detail) => tell("PosternSignInOnSuccess", detail),
      (detail) => tell("PosternSignInOnFailure", detail),
    );
    return result;
  };

  // A check that a decision requires: the server of the app got its address, and made the state.
  const check = ({ challengeUrl, state, mode }) => {
    if (!String(challengeUrl).startsWith(issuer + "/auth/begin?") || !state) {
      return Promise.reject({ error: "invalid_request" });
    }
    if (mode === "popup") {
      return inPopup(state, challengeUrl, state, ({ check_result }) => ({ check_result, state }));
    }
    location.assign(challengeUrl);
    return new Promise(() => {});
  };

  const init = (options) => {
    settings = { ...options };
  };

  const render = (place) => {
    const data = { ...place.dataset };
    const asked = (data.lang || document.documentElement.lang).toLowerCase();
    const lang = [asked, asked.split("-")[0]].find((tag) => Object.hasOwn(texts, tag)) ?? "en";
    const kind = texts.en[data.kind] ? data.kind : "sign-in";
    const image = new URL(issuer + "/auth/button.svg");
    const { style, width, height, logo, radius, border } = data;
    const look = { kind, lang, style, width, height, logo, radius, border };
    for (const name of Object.keys(look)) if (look[name]) image.searchParams.set(name, look[name]);
    const picture = document.createElement("img");
    picture.src = image.href;
    picture.alt = texts[lang][kind].replace("%", () => service);
    picture.lang = lang;
    const button = document.createElement("button");
    button.type = "button";
    button.style.cssText = "padding:0;border:0;background:none;cursor:pointer;line-height:0";
    button.style.borderRadius = `${radius || 8}px`;
    button.append(picture);
    button.addEventListener("click", () => signIn(data).catch(() => {}));
    place.replaceChildren(button);
  };

  const renderAll = () => document.querySelectorAll("#postern-sign-in, .postern-sign-in").forEach(render);

  window.Postern = Object.freeze({ auth: Object.freeze({ init, signIn, check, render }) });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", renderAll);
  else renderAll();
})();
