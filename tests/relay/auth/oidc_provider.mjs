// The certified provider of npm, `oidc-provider`, with one client and its own sign-in forms.
// Usage: node oidc_provider.mjs PORT CALLBACK
import { Provider } from "oidc-provider";

const [port, callback] = process.argv.slice(2);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [{ client_id: "svc-test", client_secret: "a secret: with % signs", redirect_uris: [callback] }],
  claims: { openid: ["sub"], profile: ["preferred_username", "name"], email: ["email"] },
  conformIdTokenClaims: false,
  async findAccount(_, id) {
    return { accountId: id, claims: async () => ({ sub: id, preferred_username: id, email: `${id}@example.org` }) };
  },
});
provider.listen(Number(port), "127.0.0.1", () => console.log("listening"));
