import { BuildOutlined, ClusterOutlined } from '@ant-design/icons'
import { Card, Typography } from 'antd'
import { useEffect } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../i18n'
import { AccountButton, HelpButton, LanguageButton, ThemeButton } from './Preferences'
import { rememberedProject } from './project'
import { words } from './words'

export default function Landing() {
  const w = useWords(words)
  const project = rememberedProject()
  useEffect(() => {
    document.title = w('product')
  }, [w])
  const cards = [
    { to: `/build/${project}/overview`, icon: <BuildOutlined />, title: w('build'), help: w('buildHelp') },
    { to: `/build/${project}/nodes`, icon: <ClusterOutlined />, title: w('cluster'), help: w('clusterHelp') },
  ]
  return (
    <div className="landing">
      <header className="landing-bar">
        <img src="/favicon.svg" width={28} height={28} alt="" />
        <strong>{w('product')}</strong>
        <span className="grow" />
        <LanguageButton />
        <ThemeButton />
        <HelpButton />
        <AccountButton />
      </header>
      <main>
        <Typography.Title level={1}>{w('consoles')}</Typography.Title>
        <Typography.Paragraph type="secondary">{w('landingLead')}</Typography.Paragraph>
        <div className="landing-cards">
          {cards.map((card) => (
            <Link key={card.to} to={card.to} className="landing-card">
              <Card hoverable>
                <span className="landing-icon" aria-hidden>
                  {card.icon}
                </span>
                <Typography.Title level={2} style={{ fontSize: 18, margin: '8px 0 4px' }}>
                  {card.title}
                </Typography.Title>
                <Typography.Text type="secondary">{card.help}</Typography.Text>
              </Card>
            </Link>
          ))}
        </div>
      </main>
    </div>
  )
}
